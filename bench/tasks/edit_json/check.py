from checking import read_json

package = read_json("package.json")
expected = {"name": "shop", "version": "2.0.0", "scripts": {"test": "pytest"}}
assert package == expected, f"package.json has {package}"
