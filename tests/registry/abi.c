/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin ABI guard: places of all fields and values of all constants against a
 * committed list, and a third party's plugin built and run.
 */
#include <strata/layers.h>

#include "registry/registry.h"

#include "tests/broken/build.h"

TestSuite(abi, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

struct place {
    const char *type, *field;
    size_t offset, size;
};

#define S(type) {#type, "", 0, sizeof(type)},
#define F(type, field) {#type, #field, offsetof(type, field), sizeof(((type *)0)->field)},

/* clang-format off */
static const struct place places[] = {
    S(strata_array) F(strata_array, ptr) F(strata_array, n) F(strata_array, stride)

    S(strata_tensor) F(strata_tensor, data) F(strata_tensor, count) F(strata_tensor, size)
    F(strata_tensor, format) F(strata_tensor, dims) F(strata_tensor, strides)
    F(strata_tensor, rank) F(strata_tensor, dtype) F(strata_tensor, vector_dim)
    F(strata_tensor, vector) F(strata_tensor, pad) F(strata_tensor, exact)
    F(strata_tensor, reserved)

    S(strata_epilogue) F(strata_epilogue, flags) F(strata_epilogue, activation)
    F(strata_epilogue, alpha) F(strata_epilogue, beta) F(strata_epilogue, scale)
    F(strata_epilogue, bias) F(strata_epilogue, residual)

    S(strata_host) F(strata_host, struct_size) F(strata_host, abi_major)
    F(strata_host, abi_minor) F(strata_host, reserved) F(strata_host, fail)
    F(strata_host, log) F(strata_host, extension)

    S(strata_node) F(strata_node, struct_size) F(strata_node, n_in) F(strata_node, n_out)
    F(strata_node, n_weights) F(strata_node, params) F(strata_node, in)
    F(strata_node, out) F(strata_node, weight) F(strata_node, epilogue)
    F(strata_node, device) F(strata_node, sm) F(strata_node, math) F(strata_node, row)
    F(strata_node, stream) F(strata_node, instance) F(strata_node, host)
    F(strata_node, err) F(strata_node, tf32) F(strata_node, reserved)

    S(strata_run) F(strata_run, struct_size) F(strata_run, n_in) F(strata_run, n_out)
    F(strata_run, n_weights) F(strata_run, params) F(strata_run, state)
    F(strata_run, ctx) F(strata_run, in) F(strata_run, out) F(strata_run, weight)
    F(strata_run, epilogue) F(strata_run, workspace) F(strata_run, workspace_size)
    F(strata_run, stream) F(strata_run, host) F(strata_run, err)

    S(strata_string) F(strata_string, text) F(strata_string, length)
    S(strata_ints) F(strata_ints, v) F(strata_ints, n)
    S(strata_reals) F(strata_reals, v) F(strata_reals, n)

    S(strata_attr) F(strata_attr, name) F(strata_attr, type) F(strata_attr, flags)
    F(strata_attr, offset) F(strata_attr, def) F(strata_attr, min) F(strata_attr, max)
    F(strata_attr, choices) F(strata_attr, def_text) F(strata_attr, doc)

    S(strata_weight) F(strata_weight, name) F(strata_weight, flags)
    F(strata_weight, rank) F(strata_weight, dtypes) F(strata_weight, doc)

    S(strata_row) F(strata_row, in) F(strata_row, out) F(strata_row, in_more)
    F(strata_row, out_more)

    S(strata_impl) F(strata_impl, id) F(strata_impl, device) F(strata_impl, flags)
    F(strata_impl, min_sm) F(strata_impl, max_sm) F(strata_impl, epilogues)
    F(strata_impl, name) F(strata_impl, rows) F(strata_impl, activations)
    F(strata_impl, efficiency) F(strata_impl, state_size) F(strata_impl, ctx_size)
    F(strata_impl, accept) F(strata_impl, workspace) F(strata_impl, setup)
    F(strata_impl, teardown) F(strata_impl, ctx_open) F(strata_impl, ctx_close)
    F(strata_impl, run) F(strata_impl, bandwidth)
    F(strata_impl, in_place)

    S(strata_layer) F(strata_layer, struct_size) F(strata_layer, version)
    F(strata_layer, name) F(strata_layer, doc) F(strata_layer, min_in)
    F(strata_layer, max_in) F(strata_layer, n_out) F(strata_layer, flags)
    F(strata_layer, params_size) F(strata_layer, attrs) F(strata_layer, weights)
    F(strata_layer, impls) F(strata_layer, shape) F(strata_layer, weight_shape)
    F(strata_layer, flops) F(strata_layer, outputs) F(strata_layer, extension)
    F(strata_layer, optional_in)

    S(strata_extends) F(strata_extends, struct_size) F(strata_extends, version)
    F(strata_extends, layer) F(strata_extends, params_size) F(strata_extends, impls)

    S(strata_module) F(strata_module, struct_size) F(strata_module, abi_minor)
    F(strata_module, ns) F(strata_module, version) F(strata_module, layers)
    F(strata_module, n_layers) F(strata_module, n_extends) F(strata_module, extends)

    S(strata_reference) F(strata_reference, struct_size) F(strata_reference, flags)
    F(strata_reference, run)
    S(strata_reference_typed) F(strata_reference_typed, struct_size)
    F(strata_reference_typed, flags) F(strata_reference_typed, run)
    S(strata_pack) F(strata_pack, struct_size) F(strata_pack, reserved)
    F(strata_pack, alloc)

    S(strata_note) F(strata_note, name_size) F(strata_note, desc_size)
    F(strata_note, type) F(strata_note, name) F(strata_note, magic)
    F(strata_note, abi_major) F(strata_note, abi_minor)
    F(strata_note, abi_required_minor) F(strata_note, cudart)
    F(strata_note, sanitizer) F(strata_note, ns) F(strata_note, version)
    F(strata_note, layers)

    /* Of strata/layers.h: what is built in, and who extends it, share these. */
    S(strata_convolution) F(strata_convolution, filters) F(strata_convolution, kernel)
    F(strata_convolution, stride) F(strata_convolution, pad)
    F(strata_convolution, dilation) F(strata_convolution, pad_mode)
    F(strata_convolution, reserved) F(strata_convolution, groups)

    S(strata_fully_connected) F(strata_fully_connected, units)
    F(strata_fully_connected, transposed) F(strata_fully_connected, reserved)

    S(strata_activation) F(strata_activation, kind) F(strata_activation, reserved)
    F(strata_activation, alpha) F(strata_activation, beta)

    S(strata_pooling) F(strata_pooling, kind) F(strata_pooling, global)
    F(strata_pooling, kernel) F(strata_pooling, stride) F(strata_pooling, pad)
    F(strata_pooling, dilation) F(strata_pooling, pad_mode) F(strata_pooling, ceil_mode)
    F(strata_pooling, count_include_pad) F(strata_pooling, indices) F(strata_pooling, p)

    S(strata_scale) F(strata_scale, mode) F(strata_scale, reserved)
    F(strata_scale, scale) F(strata_scale, shift) F(strata_scale, power)

    S(strata_elementwise) F(strata_elementwise, op) F(strata_elementwise, reserved)
    F(strata_elementwise, fmod) F(strata_elementwise, reserved1)

    S(strata_softmax) F(strata_softmax, axis) F(strata_softmax, log)
    F(strata_softmax, reserved)

    S(strata_concatenation) F(strata_concatenation, axis)

    S(strata_slice) F(strata_slice, axes) F(strata_slice, begin) F(strata_slice, end)
    F(strata_slice, step) F(strata_slice, split) F(strata_slice, parts)
    F(strata_slice, axis) F(strata_slice, like)

    S(strata_padding) F(strata_padding, mode) F(strata_padding, reserved)
    F(strata_padding, begin) F(strata_padding, end) F(strata_padding, value)

    S(strata_shuffle) F(strata_shuffle, first) F(strata_shuffle, shape)
    F(strata_shuffle, second)

    S(strata_resize) F(strata_resize, mode) F(strata_resize, coordinates)
    F(strata_resize, size) F(strata_resize, scale) F(strata_resize, axes)
    F(strata_resize, nearest) F(strata_resize, keep_aspect) F(strata_resize, cubic_a)
    F(strata_resize, roi) F(strata_resize, extrapolation) F(strata_resize, antialias)
    F(strata_resize, exclude_outside) F(strata_resize, like)

    S(strata_pointwise) F(strata_pointwise, program)

    S(strata_constant) F(strata_constant, shape)

    S(strata_deconvolution) F(strata_deconvolution, filters)
    F(strata_deconvolution, kernel) F(strata_deconvolution, stride)
    F(strata_deconvolution, pad) F(strata_deconvolution, dilation)
    F(strata_deconvolution, pad_mode) F(strata_deconvolution, reserved)
    F(strata_deconvolution, groups) F(strata_deconvolution, output_pad)
    F(strata_deconvolution, output_size)

    S(strata_lrn) F(strata_lrn, size) F(strata_lrn, alpha) F(strata_lrn, beta)
    F(strata_lrn, bias)

    S(strata_max_unpool) F(strata_max_unpool, kernel) F(strata_max_unpool, stride)
    F(strata_max_unpool, pad) F(strata_max_unpool, output_size)

    S(strata_matrix_multiply) F(strata_matrix_multiply, transpose_a)
    F(strata_matrix_multiply, transpose_b) F(strata_matrix_multiply, alpha)
    F(strata_matrix_multiply, beta) F(strata_matrix_multiply, units)
    F(strata_matrix_multiply, weight_bits) F(strata_matrix_multiply, weight_group)

    S(strata_normalization) F(strata_normalization, kind) F(strata_normalization, sum)
    F(strata_normalization, statistics) F(strata_normalization, reserved)
    F(strata_normalization, axis) F(strata_normalization, groups)
    F(strata_normalization, p) F(strata_normalization, epsilon)

    S(strata_reduce) F(strata_reduce, op) F(strata_reduce, keep_dims)
    F(strata_reduce, axes)

    S(strata_arg_max) F(strata_arg_max, op) F(strata_arg_max, keep_dims)
    F(strata_arg_max, ties) F(strata_arg_max, index) F(strata_arg_max, axis)

    S(strata_top_k) F(strata_top_k, k) F(strata_top_k, axis) F(strata_top_k, largest)
    F(strata_top_k, sorted)

    S(strata_cum_sum) F(strata_cum_sum, op) F(strata_cum_sum, exclusive)
    F(strata_cum_sum, reverse) F(strata_cum_sum, reserved) F(strata_cum_sum, axis)

    S(strata_unary) F(strata_unary, op) F(strata_unary, negative)
    F(strata_unary, positive) F(strata_unary, reserved)

    S(strata_compare) F(strata_compare, op) F(strata_compare, reserved)

    S(strata_cast) F(strata_cast, to) F(strata_cast, saturate)

    S(strata_narrow) F(strata_narrow, values) F(strata_narrow, saturate)
    F(strata_narrow, round) F(strata_narrow, reserved)

    S(strata_gated) F(strata_gated, kind) F(strata_gated, reserved) F(strata_gated, axis)
    F(strata_gated, alpha) F(strata_gated, beta)

    S(strata_quantize) F(strata_quantize, axis) F(strata_quantize, block)
    F(strata_quantize, dtype) F(strata_quantize, saturate)

    S(strata_quantized) F(strata_quantized, zero_in) F(strata_quantized, zero_out)
    F(strata_quantized, to) F(strata_quantized, activation) F(strata_quantized, alpha)
    F(strata_quantized, beta)
    S(strata_quantized_convolution) F(strata_quantized_convolution, convolution)
    F(strata_quantized_convolution, quantized)
    F(strata_quantized_convolution, zero_addend)
    F(strata_quantized_convolution, zero_between)
    F(strata_quantized_convolution, between) F(strata_quantized_convolution, reserved)
    S(strata_quantized_deconvolution) F(strata_quantized_deconvolution, deconvolution)
    F(strata_quantized_deconvolution, quantized)
    S(strata_quantized_product) F(strata_quantized_product, units)
    F(strata_quantized_product, transposed) F(strata_quantized_product, reserved)
    F(strata_quantized_product, quantized)
    S(strata_quantized_sum) F(strata_quantized_sum, quantized)
    F(strata_quantized_sum, zero_b)
    S(strata_quantized_pooling) F(strata_quantized_pooling, pooling)
    F(strata_quantized_pooling, quantized)

    S(strata_quantized_attention) F(strata_quantized_attention, attention)
    F(strata_quantized_attention, to) F(strata_quantized_attention, reserved)

    S(strata_expand) F(strata_expand, shape) F(strata_expand, repeats)

    S(strata_triangle) F(strata_triangle, upper) F(strata_triangle, reserved)
    F(strata_triangle, k)

    S(strata_gather) F(strata_gather, mode) F(strata_gather, reserved)
    F(strata_gather, axis) F(strata_gather, batch_dims)

    S(strata_embedding) F(strata_embedding, rows) F(strata_embedding, columns)

    S(strata_scatter) F(strata_scatter, mode) F(strata_scatter, reduction)
    F(strata_scatter, axis)

    S(strata_reverse_sequence) F(strata_reverse_sequence, batch_axis)
    F(strata_reverse_sequence, time_axis)

    S(strata_grid_sample) F(strata_grid_sample, mode) F(strata_grid_sample, padding)
    F(strata_grid_sample, align_corners) F(strata_grid_sample, reserved)

    S(strata_roi_align) F(strata_roi_align, size) F(strata_roi_align, mode)
    F(strata_roi_align, coordinates) F(strata_roi_align, sampling)
    F(strata_roi_align, scale)

    S(strata_non_max_suppression) F(strata_non_max_suppression, max_output)
    F(strata_non_max_suppression, iou) F(strata_non_max_suppression, score)
    F(strata_non_max_suppression, box) F(strata_non_max_suppression, reserved)
};

#define C(name) {#name, (uint64_t)(name)},

static const struct {
    const char *name;
    uint64_t value;
} constants[] = {
    C(STRATA_ABI_MAJOR) C(STRATA_MAX_RANK) C(STRATA_MAX_PORTS)
    C(STRATA_MORE_PORTS)
    C(STRATA_OK) C(STRATA_EINVAL) C(STRATA_ENOMEM) C(STRATA_EOVERFLOW) C(STRATA_EIO)
    C(STRATA_ENOTFOUND) C(STRATA_EPARSE) C(STRATA_EUNSUPPORTED) C(STRATA_EBUSY)
    C(STRATA_EMODULE) C(STRATA_EPLAN) C(STRATA_EDEVICE) C(STRATA_EDEVICELOST)
    C(STRATA_EMISMATCH) C(STRATA_EINTERNAL)
    C(STRATA_FP32) C(STRATA_FP16) C(STRATA_INT8) C(STRATA_UINT8) C(STRATA_INT32)
    C(STRATA_INT64) C(STRATA_BOOL8) C(STRATA_BF16) C(STRATA_E4M3) C(STRATA_E5M2)
    C(STRATA_FP64)
    C(STRATA_F32_NCHW) C(STRATA_F16_NCHW) C(STRATA_F16_NC2HW2) C(STRATA_F16_NHWC8)
    C(STRATA_F32_NHWC) C(STRATA_F16_NHWC) C(STRATA_F32_NC8HW8) C(STRATA_F32_NC16HW16)
    C(STRATA_I8_NC4HW4) C(STRATA_I8_NC32HW32) C(STRATA_U8_NHWC) C(STRATA_I32_NCHW)
    C(STRATA_I8_NCHW) C(STRATA_U8_NCHW) C(STRATA_F32_CHWN) C(STRATA_F16_CHWN)
    C(STRATA_I8_NHWC) C(STRATA_I64_NCHW) C(STRATA_BOOL_NCHW) C(STRATA_BF16_NCHW)
    C(STRATA_BF16_NHWC) C(STRATA_BF16_NHWC8) C(STRATA_U8_NC4HW4) C(STRATA_U8_NC32HW32)
    C(STRATA_I8_NHWC16) C(STRATA_E4M3_NCHW) C(STRATA_E4M3_NHWC16) C(STRATA_E5M2_NCHW)
    C(STRATA_E5M2_NHWC16) C(STRATA_F64_NCHW) C(STRATA_SAME)
    C(STRATA_PAD_ZERO) C(STRATA_PAD_ANY) C(STRATA_HOST) C(STRATA_CUDA)
    C(STRATA_MATH_DEFAULT) C(STRATA_MATH_TENSOR_OP) C(STRATA_MATH_TF32)
    C(STRATA_EPILOGUE_SCALE) C(STRATA_EPILOGUE_BIAS) C(STRATA_EPILOGUE_RESIDUAL)
    C(STRATA_EPILOGUE_ACTIVATION)
    C(STRATA_RELU) C(STRATA_LEAKY_RELU) C(STRATA_RELU6) C(STRATA_CLIP) C(STRATA_SIGMOID)
    C(STRATA_TANH) C(STRATA_ELU) C(STRATA_SELU) C(STRATA_SOFTPLUS) C(STRATA_SOFTSIGN)
    C(STRATA_GELU) C(STRATA_SILU) C(STRATA_HARD_SIGMOID) C(STRATA_HARD_SWISH)
    C(STRATA_MISH) C(STRATA_GELU_TANH) C(STRATA_SWISH) C(STRATA_CELU)
    C(STRATA_THRESHOLDED_RELU) C(STRATA_SHRINK) C(STRATA_SCALED_TANH)
    C(STRATA_LOG_ERROR) C(STRATA_LOG_WARNING) C(STRATA_LOG_INFO) C(STRATA_LOG_DEBUG)
    C(STRATA_I64) C(STRATA_F64) C(STRATA_BOOL) C(STRATA_ENUM) C(STRATA_STRING)
    C(STRATA_INTS) C(STRATA_REALS) C(STRATA_REQUIRED) C(STRATA_FACTORS)
    C(STRATA_NO_CAPTURE) C(STRATA_NONDETERMINISTIC) C(STRATA_INPLACE_OK)
    C(STRATA_PAD_DIRTY) C(STRATA_PAD_IGNORED) C(STRATA_STRIDED_IN) C(STRATA_STRIDED_OUT)
    C(STRATA_WEIGHT_PACKED) C(STRATA_NAN_DROPPED) C(STRATA_OVERFLOW_DROPPED)
    C(STRATA_PITCHED_IN) C(STRATA_PITCHED_OUT) C(STRATA_WEIGHT_STORED)
    C(STRATA_PITCHED_RESIDUAL) C(STRATA_ROUNDS_IN)
    C(STRATA_NAN_IGNORED) C(STRATA_HELD_WITHIN)
    C(STRATA_NOTE_TYPE) C(STRATA_NOTE_MAGIC) C(STRATA_SANITIZER_NONE)
    C(STRATA_SANITIZER_ADDRESS) C(STRATA_SANITIZER_THREAD)
    /* Of strata/layers.h. */
    C(STRATA_PAD_EXPLICIT) C(STRATA_PAD_SAME_UPPER) C(STRATA_PAD_SAME_LOWER)
    C(STRATA_PAD_VALID) C(STRATA_POOL_MAX) C(STRATA_POOL_AVERAGE) C(STRATA_POOL_LP)
    C(STRATA_SCALE_AUTO) C(STRATA_SCALE_UNIFORM) C(STRATA_SCALE_CHANNEL)
    C(STRATA_SCALE_ELEMENTWISE) C(STRATA_SUM) C(STRATA_SUB) C(STRATA_PRODUCT)
    C(STRATA_DIV) C(STRATA_MAX) C(STRATA_MIN) C(STRATA_POW) C(STRATA_MOD) C(STRATA_AND)
    C(STRATA_OR) C(STRATA_XOR) C(STRATA_BIT_AND) C(STRATA_BIT_OR) C(STRATA_BIT_XOR)
    C(STRATA_SHIFT_LEFT) C(STRATA_SHIFT_RIGHT) C(STRATA_MEAN) C(STRATA_PADDING_CONSTANT)
    C(STRATA_PADDING_REFLECT) C(STRATA_PADDING_EDGE) C(STRATA_PADDING_WRAP)
    C(STRATA_NEAREST) C(STRATA_BILINEAR) C(STRATA_RESIZE_LINEAR) C(STRATA_RESIZE_CUBIC)
    C(STRATA_HALF_PIXEL) C(STRATA_ASYMMETRIC) C(STRATA_ALIGN_CORNERS)
    C(STRATA_PYTORCH_HALF_PIXEL) C(STRATA_HALF_PIXEL_SYMMETRIC)
    C(STRATA_TF_CROP_AND_RESIZE) C(STRATA_ROUND_BY_COORDINATES)
    C(STRATA_ROUND_PREFER_FLOOR) C(STRATA_ROUND_PREFER_CEIL) C(STRATA_ROUND_FLOOR)
    C(STRATA_ROUND_CEIL) C(STRATA_ASPECT_STRETCH) C(STRATA_ASPECT_NOT_LARGER)
    C(STRATA_ASPECT_NOT_SMALLER) C(STRATA_NORMALIZATION_LAYER)
    C(STRATA_NORMALIZATION_RMS) C(STRATA_NORMALIZATION_GROUP)
    C(STRATA_NORMALIZATION_INSTANCE) C(STRATA_NORMALIZATION_BATCH)
    C(STRATA_NORMALIZATION_LP) C(STRATA_REDUCE_SUM) C(STRATA_REDUCE_MEAN)
    C(STRATA_REDUCE_MAX) C(STRATA_REDUCE_MIN) C(STRATA_REDUCE_PROD) C(STRATA_REDUCE_L1)
    C(STRATA_REDUCE_L2) C(STRATA_REDUCE_SUM_SQUARE) C(STRATA_REDUCE_LOG_SUM)
    C(STRATA_REDUCE_LOG_SUM_EXP) C(STRATA_ARG_MAX) C(STRATA_ARG_MIN) C(STRATA_TIES_FIRST)
    C(STRATA_TIES_LAST) C(STRATA_INDEX_I64) C(STRATA_INDEX_I32) C(STRATA_CUM_SUM)
    C(STRATA_CUM_PRODUCT) C(STRATA_UNARY_ABS) C(STRATA_UNARY_NEG) C(STRATA_UNARY_EXP)
    C(STRATA_UNARY_LOG) C(STRATA_UNARY_SQRT) C(STRATA_UNARY_RECIPROCAL)
    C(STRATA_UNARY_SIGN) C(STRATA_UNARY_FLOOR) C(STRATA_UNARY_CEIL) C(STRATA_UNARY_ROUND)
    C(STRATA_UNARY_SIN) C(STRATA_UNARY_COS) C(STRATA_UNARY_TAN) C(STRATA_UNARY_ASIN)
    C(STRATA_UNARY_ACOS) C(STRATA_UNARY_ATAN) C(STRATA_UNARY_SINH) C(STRATA_UNARY_COSH)
    C(STRATA_UNARY_TANH) C(STRATA_UNARY_ASINH) C(STRATA_UNARY_ACOSH)
    C(STRATA_UNARY_ATANH) C(STRATA_UNARY_ERF) C(STRATA_UNARY_NOT) C(STRATA_UNARY_BIT_NOT)
    C(STRATA_UNARY_IS_NAN) C(STRATA_UNARY_IS_INF) C(STRATA_COMPARE_EQUAL)
    C(STRATA_COMPARE_NOT_EQUAL) C(STRATA_COMPARE_LESS) C(STRATA_COMPARE_LESS_EQUAL)
    C(STRATA_COMPARE_GREATER) C(STRATA_COMPARE_GREATER_EQUAL) C(STRATA_GATHER_SLICES)
    C(STRATA_GATHER_ELEMENTS) C(STRATA_GATHER_ND) C(STRATA_SCATTER_ELEMENTS)
    C(STRATA_SCATTER_ND) C(STRATA_SCATTER_NONE) C(STRATA_SCATTER_ADD)
    C(STRATA_SCATTER_MUL) C(STRATA_SCATTER_MAX) C(STRATA_SCATTER_MIN)
    C(STRATA_GRID_LINEAR) C(STRATA_GRID_NEAREST) C(STRATA_GRID_CUBIC)
    C(STRATA_GRID_ZEROS) C(STRATA_GRID_BORDER) C(STRATA_GRID_REFLECTION)
    C(STRATA_ROI_AVERAGE) C(STRATA_ROI_MAX) C(STRATA_ROI_HALF_PIXEL)
    C(STRATA_ROI_OUTPUT_HALF_PIXEL) C(STRATA_BOX_CORNERS) C(STRATA_BOX_CENTER)
    C(STRATA_QUANTIZED_WEIGHT) C(STRATA_QUANTIZED_BIAS) C(STRATA_QUANTIZED_FACTORS)
    C(STRATA_QUANTIZED_SCALE_IN) C(STRATA_QUANTIZED_SCALE_OUT)
    C(STRATA_QUANTIZED_WEIGHTS)
    /* Frozen: these do not even grow. */
    C(sizeof(strata_tensor)) C(sizeof(strata_attr)) C(sizeof(strata_weight))
    C(sizeof(strata_array)) C(sizeof(strata_note))
};
/* clang-format on */

static struct blob golden(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/abi/golden-offsets.txt", env_or("srcdir", "."));
    struct blob b = slurp(path);
    b.bytes[b.size] = '\0';
    return b;
}

/* Whether the list has the line; `key`, its part that must not move, alone otherwise. */
static void expect_line(const char *list, const char *key, const char *line)
{
    const char *at = strstr(list, key);
    cr_expect(at && !strncmp(at + 1, line, strlen(line)),
              "'%s' is not in tests/abi/golden-offsets.txt; it has '%.*s'. A new field "
              "adds lines; a line never changes within an ABI major.",
              line, at ? (int)strcspn(at + 1, "\n") : 7, at ? at + 1 : "nothing");
}

Test(abi, no_field_has_moved)
{
    struct blob list = golden();
    for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
        const struct place *p = &places[i];
        char key[128], line[160];
        /* A struct may grow within a major; what it had stays where it was. */
        if (!p->field[0])
            continue;
        snprintf(key, sizeof key, "\n%s.%s ", p->type, p->field);
        snprintf(line, sizeof line, "%s.%s offset %zu size %zu\n", p->type, p->field,
                 p->offset, p->size);
        expect_line((const char *)list.bytes, key, line);
    }
    free(list.bytes);
}

Test(abi, no_constant_has_changed)
{
    struct blob list = golden();
    for (size_t i = 0; i < ARRAY_LENGTH(constants); i++) {
        char key[128], line[160];
        snprintf(key, sizeof key, "\n%s ", constants[i].name);
        snprintf(line, sizeof line, "%s = 0x%llx\n", constants[i].name,
                 (unsigned long long)constants[i].value);
        expect_line((const char *)list.bytes, key, line);
    }
    free(list.bytes);
}

Test(abi, the_list_has_nothing_that_is_gone)
{
    struct blob list = golden();
    size_t lines = 0, fields = 0;
    for (size_t i = 0; i < list.size; i++)
        lines += list.bytes[i] == '\n' && list.bytes[i + 1] != '#' && list.bytes[i + 1];
    for (size_t i = 0; i < ARRAY_LENGTH(places); i++)
        fields += places[i].field[0] != '\0';
    cr_expect_eq(lines, fields + ARRAY_LENGTH(constants), "%zu lines, %zu entries", lines,
                 fields + ARRAY_LENGTH(constants));
    free(list.bytes);
}

/* No hole can hide a field that the table above forgets. */
Test(abi, fields_follow_each_other_without_holes)
{
    for (size_t i = 0, end = 0, size = 0; i <= ARRAY_LENGTH(places); i++) {
        const struct place *p = &places[i];
        if (i == ARRAY_LENGTH(places) || !p->field[0]) {
            cr_expect_eq(end, size, "before %zu: ends at %zu of %zu", i, end, size);
            if (i < ARRAY_LENGTH(places))
                size = p->size;
            end = 0;
            continue;
        }
        cr_expect_eq(p->offset, end, "%s.%s is at %zu, the one before ends at %zu",
                     p->type, p->field, p->offset, end);
        end = p->offset + p->size;
    }
}

Test(abi, a_third_party_plugin_under_thirty_lines_runs)
{
    char path[512];
    strata_registry *r;
    strata_error err = {0};
    const struct registry_layer *layer;
    size_t lines = 0;
    snprintf(path, sizeof path, "%s/tests/%s", env_or("srcdir", "."), LEAKY);
    struct blob source = slurp(path);
    for (size_t i = 0; i < source.size; i++)
        lines += source.bytes[i] == '\n';
    cr_expect_lt(lines, 30, "%zu lines", lines);
    free(source.bytes);

    const char *const files[] = {build("leaky_relu.so", LEAKY,
                                       SHARED " -std=c99 -pedantic -Wall -Wextra -Werror "
                                              "-Wno-missing-field-initializers "
                                              "-Wl,-z,defs")};
    strata_registry_options options = {.struct_size = sizeof options,
                                       .files = files,
                                       .n_files = 1,
                                       .no_default_path = 1};
    cr_assert_eq(strata_registry_create(&r, &options, &err), STRATA_OK, "%s",
                 err.message);
    cr_assert_eq(registry_find(r, "LeakyReLU", &layer, &err), STRATA_OK, "%s",
                 err.message);
    cr_assert_eq(layer->n_attrs, 1);
    cr_expect_eq(layer->attrs[0].type, STRATA_F64);
    cr_expect_eq(layer->attrs[0].def, 0.01);
    cr_assert_eq(layer->n_impls, 1);
    cr_expect_eq(layer->layer.params_size, sizeof(double));

    enum { N = 1003 };
    static float x[N], y[N];
    double slope = 0.25;
    srand(7);
    for (int i = 0; i < N; i++)
        x[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    const strata_tensor in = {
        .data = x, .count = N, .size = N, .format = STRATA_F32_NCHW};
    const strata_tensor out = {
        .data = y, .count = N, .size = N, .format = STRATA_F32_NCHW};
    const strata_run call = {.struct_size = sizeof call,
                             .n_in = 1,
                             .n_out = 1,
                             .params = &slope,
                             .in = &in,
                             .out = &out,
                             .host = registry_host(),
                             .err = &err};
    cr_assert_eq(layer->impls[0].impl.run(&call), STRATA_OK);
    for (int i = 0; i < N; i++)
        cr_assert_eq(y[i], x[i] > 0 ? x[i] : 0.25f * x[i], "element %d", i);
    strata_registry_destroy(r);
}
