// Builds the registry that charts are pushed to in tests; see ../README.md.
module carrick/e2e/servers/registry

go 1.26

require github.com/google/go-containerregistry v0.20.6
