NETWORK_SOURCES = \
	network/attributes.c \
	network/attributes.h \
	network/batch.c \
	network/bench.c \
	network/doubt.c \
	network/graph.c \
	network/image.c \
	network/input.c \
	network/layers.c \
	network/network.c \
	network/network.h \
	network/options.h \
	network/private.h \
	network/reader.c \
	network/sections.c \
	network/shapes.c \
	network/weights.c \
	network/write.c
EXTRA_DIST += network/README.md
