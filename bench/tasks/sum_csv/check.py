from checking import assert_answer_has, assert_unchanged

assert_answer_has("42")
assert_unchanged("sales.csv")
