# Layers that only move elements: C around the kernels of move.cu.
MOVE_SOURCES = \
	plugins/common/move/job.h \
	plugins/common/move/move.c \
	plugins/common/move/move.h
CUDA_PLUGIN_KERNELS += plugins/common/move/move.cu
EXTRA_DIST += $(MOVE_SOURCES)
