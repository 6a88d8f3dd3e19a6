/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks that others trained, for tests. The raw models are not in the repository: they
 * are looked for in $STRATA_MODELS, or in ../shared/models beside the sources, and tests
 * of them skipped by name when absent. scripts/convert_models.py makes the weights of
 * each in a scratch folder.
 */
#ifndef TESTS_SUPPORT_MODELS_H
#define TESTS_SUPPORT_MODELS_H

#include <stddef.h>

enum { TEXT = 2048 };

extern char models[TEXT]; /* folder of the raw models */
extern char scratch[TEXT];
extern char ini[TEXT]; /* of the model, in scratch */

/* FOLDER/NAME, with a suffix. */
void join(char *out, const char *folder, const char *name, const char *suffix);
/* A file, malloc'ed; one of `count` elements of `element` bytes after a header of `skip`
 * bytes. */
void *read_file(const char *folder, const char *name, size_t *size);
void *read_array(const char *folder, const char *name, size_t skip, size_t count,
                 size_t element);
/* Run a program, whose standard output is left out of the test's report; its status. */
int run_quietly(char *const *arguments);

/* Weights and INI file of a model in the scratch folder, or skip the test. A skipped
 * test is not cleaned up after, so nothing may be made before it. */
void need_model(const char *model);
void make_scratch(void);
void remove_scratch(void);

#endif /* TESTS_SUPPORT_MODELS_H */
