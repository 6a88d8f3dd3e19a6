IO_SOURCES = \
	io/engine_file.c \
	io/engine_file.h \
	io/file.c \
	io/file.h \
	io/file_write.c \
	io/image/idx.c \
	io/image/image.c \
	io/image/image.h \
	io/image/jpeg.c \
	io/image/memory.c \
	io/image/netpbm.c \
	io/image/png.c \
	io/image/private.h \
	io/image/tensor.c \
	io/json.h \
	io/weights/npy.c \
	io/weights/npy.h \
	io/printable.h \
	io/weights/safetensors.c \
	io/weights/weights.c \
	io/weights/weights.h \
	io/weights/convert.c \
	io/weights/private.h \
	io/weights/random.c \
	io/weights/record.c
EXTRA_DIST += io/README.md
