"""The errors that components may name."""


class ConCopilotError(Exception):
    """Anything of the framework's own. `msg` is the sentence."""

    def __init__(self, msg: str) -> None:
        super().__init__(msg)
        self.msg = msg


class PackageException(ConCopilotError):
    """A component's package could not be had."""


class PackageHttpException(PackageException):
    """A repository answered with an HTTP status that is no success."""

    def __init__(self, msg: str, http_code: int) -> None:
        super().__init__(msg)
        self.http_code = http_code


class PackageServiceException(PackageException):
    """A repository took the request and refused it."""

    def __init__(self, msg: str, status_code: int, status_des: str) -> None:
        super().__init__(msg)
        self.status_code = status_code
        self.status_des = status_des
