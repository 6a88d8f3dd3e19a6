# What layers share. Headers are static inline; kernels are linked where they are used.
EXTRA_DIST += \
	plugins/common/activate.h \
	plugins/common/affine.h \
	plugins/common/cast.h \
	plugins/common/convert.cuh \
	plugins/common/copy_ahead.cuh \
	plugins/common/deconvolution/deconvolution.h \
	plugins/common/dense.h \
	plugins/common/dense_weight.h \
	plugins/common/dtype.h \
	plugins/common/element.h \
	plugins/common/fill.h \
	plugins/common/image.h \
	plugins/common/index.cuh \
	plugins/common/index.h \
	plugins/common/lines.h \
	plugins/common/reduce/cut.cuh \
	plugins/common/reduce/joined.cuh \
	plugins/common/reduce/plan.h \
	plugins/common/reduce/reduce.cuh \
	plugins/common/reduce/reduce.h \
	plugins/common/product/fours.cuh \
	plugins/common/product/hopper.cuh \
	plugins/common/product/hopper_tile.cuh \
	plugins/common/product/launch.cuh \
	plugins/common/product/order.cuh \
	plugins/common/product/pair.cuh \
	plugins/common/product/plain.cuh \
	plugins/common/product/store.cuh \
	plugins/common/product/tactics.h \
	plugins/common/product/tile.h \
	plugins/common/product/turned.cuh \
	plugins/common/product/turned_moves.cuh \
	plugins/common/product/turned_parts.cuh \
	plugins/common/product/turned_store.cuh \
	plugins/common/product/turned_tile.cuh \
	plugins/common/product/wgmma.cuh \
	plugins/common/product/tensor_map.cuh \
	plugins/common/product/windows.cuh \
	plugins/common/product/written.cuh \
	plugins/common/walk.h \
	plugins/common/pointwise.cuh \
	plugins/common/pointwise_walk.cuh \
	plugins/common/filters.h \
	plugins/common/window.cuh \
	plugins/common/window.h
CUDA_PLUGIN_KERNELS += plugins/common/dense_weight.cu
