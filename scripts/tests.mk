# A test's own code is compiled without optimising, which takes a third of the time, unless
# it computes much itself: references of layers, whole searches, inputs by the million.
TEST_CFLAGS = -O0
tests/%.o: private CFLAGS += $(TEST_CFLAGS)
tests/calibrate/%.o tests/check/%.o tests/engine/random_networks.o tests/formats/%.o \
tests/io/weights.o tests/language/%.o tests/layers/%.o tests/planner/solver/%.o \
tests/plugins/%.o: TEST_CFLAGS =
