CRITERION_TESTS += \
	tests/cuda/batch \
	tests/cuda/check \
	tests/cuda/context \
	tests/cuda/decoder \
	tests/cuda/device \
	tests/cuda/foreign \
	tests/cuda/in_place \
	tests/cuda/layers \
	tests/cuda/lost \
	tests/cuda/network \
	tests/cuda/reformat
tests_cuda_batch_SOURCES = tests/cuda/batch.c tests/engine/batch_net.h \
	tests/cuda/device.h
tests_cuda_context_SOURCES = tests/cuda/context.c tests/cuda/chain.c tests/cuda/chain.h \
	tests/cuda/device.h
tests_cuda_decoder_SOURCES = tests/cuda/decoder.c tests/engine/batch_net.h \
	tests/cuda/device.h
tests_cuda_device_SOURCES = tests/cuda/device.c tests/cuda/device.h
tests_cuda_foreign_SOURCES = tests/cuda/foreign.c tests/cuda/chain.c tests/cuda/chain.h \
	tests/cuda/device.h tests/cuda/runtime.h
tests_cuda_foreign_LDADD = $(LDADD) $(DL_LIBS)
tests_cuda_in_place_SOURCES = tests/cuda/in_place.c tests/cuda/chain.c tests/cuda/chain.h \
	tests/cuda/device.h
tests_cuda_layers_SOURCES = tests/cuda/layers.c tests/cuda/sample.c tests/cuda/sample.h \
	tests/cuda/device.h tests/layers/cases.h $(LAYER_CASES)
tests_cuda_lost_SOURCES = tests/cuda/lost.c tests/engine/batch_net.h tests/cuda/device.h
tests_cuda_network_SOURCES = tests/cuda/network.c tests/cuda/chain.c tests/cuda/chain.h \
	tests/cuda/device.h
tests_cuda_reformat_SOURCES = tests/cuda/reformat.c tests/cuda/device.h
# Not a test of its own: scripts/gpu-sanitize-plans.sh runs it.
check_PROGRAMS += tests/cuda/candidates
tests_cuda_candidates_SOURCES = tests/cuda/candidates.c tests/cuda/runtime.h
tests_cuda_candidates_LDADD = libstrata-internal.la $(DL_LIBS)
EXTRA_DIST += tests/cuda/nets/encoder.ini tests/cuda/nets/recurrent.ini
# Beside the modules of a bundle: what strata check does not find by itself.
EXTRA_DIST += tests/cuda/modules/cublaslt.ini tests/cuda/modules/projection-cuda.ini \
	tests/cuda/modules/inverted_residual-cuda.ini \
	tests/cuda/modules/bottleneck-cuda.ini \
	tests/cuda/modules/pooled_convolution-cuda.ini \
	tests/cuda/modules/self_attention-cuda.ini \
	tests/cuda/modules/shortcut_convolution-cuda.ini
if HAVE_CUDNN
CRITERION_TESTS += tests/cuda/cudnn
tests_cuda_cudnn_SOURCES = tests/cuda/cudnn.c plugins/convolution/cudnn/choice.c \
	plugins/convolution/cudnn/graph.c
tests_cuda_cudnn_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_cudnn_LDADD = $(LDADD) $(CUDA_LDFLAGS) -lcudnn $(PTHREAD_LIBS)
endif
if HAVE_CUDA
CRITERION_TESTS += tests/cuda/faults tests/cuda/other_lost
tests_cuda_other_lost_SOURCES = tests/cuda/other_lost.c kernels/device.h kernels/error.c \
	kernels/memory.c kernels/node.c
tests_cuda_other_lost_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_faults_SOURCES = tests/cuda/faults.c tests/cuda/fault.c tests/cuda/fault.h \
	tests/cuda/runtime.h tests/engine/batch_net.h tests/cuda/device.h
tests_cuda_faults_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_faults_LDADD = $(LDADD) $(DL_LIBS)
tests_cuda_faults_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
endif
