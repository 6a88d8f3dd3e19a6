/* SPDX-License-Identifier: Apache-2.0
 *
 * strata inspect of an ONNX model.
 */
#ifndef TOOLS_INSPECT_ONNX_H
#define TOOLS_INSPECT_ONNX_H

#include "tools/tool.h"

/* Print what it holds; an exit code. */
int inspect_onnx(const char *path, int format);

#endif /* TOOLS_INSPECT_ONNX_H */
