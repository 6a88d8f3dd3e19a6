CRITERION_TESTS += \
	tests/io/engine_file \
	tests/io/file \
	tests/io/file_write \
	tests/io/image \
	tests/io/image_tensor \
	tests/io/npy \
	tests/io/onnx \
	tests/io/onnx_data \
	tests/io/onnx_external \
	tests/io/onnx_malformed \
	tests/io/weights \
	tests/io/weights_convert \
	tests/io/weights_malformed
tests_io_file_SOURCES = tests/io/file.c tests/support/file_tree.h
tests_io_file_write_SOURCES = tests/io/file_write.c tests/support/file_tree.h
tests_io_image_CPPFLAGS = $(AM_CPPFLAGS) $(PNG_CFLAGS) $(JPEG_CFLAGS)
tests_io_npy_SOURCES = tests/io/npy.c tests/io/weights_files.h \
	tests/io/weights_refusal.h
tests_io_onnx_SOURCES = tests/io/onnx.c tests/io/onnx_text.h
tests_io_onnx_external_SOURCES = tests/io/onnx_external.c tests/io/onnx_text.h
tests_io_onnx_malformed_SOURCES = tests/io/onnx_malformed.c tests/io/onnx_text.h
tests_io_weights_SOURCES = tests/io/weights.c tests/io/weights_files.h
tests_io_weights_malformed_SOURCES = tests/io/weights_malformed.c \
	tests/io/weights_refusal.h
