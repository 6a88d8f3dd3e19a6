IO_SOURCES = \
	io/engine_file.c \
	io/engine_file.h \
	io/file.c \
	io/file.h \
	io/file_write.c \
	io/idx.c \
	io/image.c \
	io/image.h \
	io/image_jpeg.c \
	io/image_netpbm.c \
	io/image_png.c \
	io/image_private.h \
	io/image_tensor.c \
	io/json.h \
	io/npy.c \
	io/npy.h \
	io/printable.h \
	io/safetensors.c \
	io/weights.c \
	io/weights.h \
	io/weights_convert.c \
	io/weights_private.h \
	io/weights_random.c
EXTRA_DIST += io/README.md
