/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters of the built-in layers (namespace core, version 1), for modules that add
 * impls to them. A field's meaning, range and default stand in `strata describe NAME`;
 * the structs only grow at the end within a layer version.
 *
 * Conventions: dim 0 is the batch, dim 1 the channels, the rest are spatial. A list
 * for spatial dims has one entry for all, or one per spatial dim; pad may also have two
 * per spatial dim, all begins first and then all ends (as in ONNX). Empty lists mean the
 * layer's default.
 */
#ifndef STRATA_LAYERS_H
#define STRATA_LAYERS_H

#include <strata/layers/elements.h>
#include <strata/layers/fused.h>
#include <strata/layers/images.h>
#include <strata/layers/places.h>
#include <strata/layers/products.h>
#include <strata/layers/quantized.h>
#include <strata/layers/rows.h>
#include <strata/layers/sequences.h>
#include <strata/layers/windows.h>

#endif /* STRATA_LAYERS_H */
