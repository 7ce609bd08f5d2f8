import poller
import sender

if __name__ == "__main__":
    print(sender.describe())
    print(poller.describe(60))
