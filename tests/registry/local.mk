CRITERION_TESTS += \
	tests/registry/abi \
	tests/registry/descriptor \
	tests/registry/module \
	tests/registry/note \
	tests/registry/registry \
	tests/registry/search
