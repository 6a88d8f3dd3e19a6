/* SPDX-License-Identifier: Apache-2.0
 *
 * The host impls that go row by row: interpolation, and nearest neighbours of up to three
 * dims without extrapolation.
 */
#ifndef PLUGINS_RESIZE_INTERPOLATE_H
#define PLUGINS_RESIZE_INTERPOLATE_H

#include <strata/plugin.h>

size_t resize_taps_workspace(const strata_node *n);
int resize_taps_run(const strata_run *r);

size_t resize_nearest_workspace(const strata_node *n);
int resize_nearest_run(const strata_run *r);

#endif /* PLUGINS_RESIZE_INTERPOLATE_H */
