/* SPDX-License-Identifier: Apache-2.0
 *
 * An ONNX model held to data sets: folders with input_0.pb, ... and the output_0.pb, ...
 * that somebody else computed, as ONNX's own test cases and model zoo have them.
 */
#ifndef CHECK_MODEL_DATA_SET_H
#define CHECK_MODEL_DATA_SET_H

#include "network/import/import.h"

struct data_set_options {
    const char *model;                   /* path of model.onnx */
    const char *folder;                  /* of the data set */
    const char *device;                  /* NULL: host */
    const struct import_options *import; /* or NULL */
    /* Take inputs that the import asks for as constants from the data set: cases of
     * single operators give shapes, axes and the like as inputs. */
    bool bake;
    double relative, absolute; /* both 0: 1e-3 and 1e-7, as ONNX's own runner */
};

struct data_set_result {
    int64_t values, wrong; /* compared, and beyond the tolerance */
    double worst;          /* the largest difference over its bound */
};

/* STRATA_OK where all outputs agree; EINVAL tells of the first that does not, by output
 * and element; other failures are why the model could not be imported or run. */
int data_set_check(struct data_set_result *out, const struct data_set_options *o,
                   strata_registry *registry, strata_error *err);

#endif /* CHECK_MODEL_DATA_SET_H */
