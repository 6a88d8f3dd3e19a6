/* SPDX-License-Identifier: Apache-2.0
 *
 * A network from INI file to context, for tests of whole networks through the public API,
 * on the host or on the device that STRATA_TEST_DEVICE names, there with the math mode of
 * STRATA_TEST_MATH. Every failure ends the calling test with the library's message.
 */
#ifndef TESTS_ENGINE_SESSION_H
#define TESTS_ENGINE_SESSION_H

#include <stdbool.h>

#include <strata/strata.h>

/* What the build section asks for. */
struct variant {
    const char *name;
    const char *precision;
    const char *formats; /* that every layer is forced into; NULL: the planner's choice */
    bool exact;          /* FP32: answers are the reference's own */
    double least, bound; /* of the error, relative to the largest value */
};
enum { VARIANTS = 7, SESSION_BINDINGS = 16 };
extern const struct variant variants[VARIANTS];

struct session {
    strata_handle *handle;
    strata_registry *registry;
    strata_network *network;
    strata_engine *engine;
    strata_context *context;
    const char *name;              /* of the variant */
    float *data[SESSION_BINDINGS]; /* on the host: copied in before a run, out after it */
};

/* `batch` is given to the variable of that name; 0: there is none. */
void session_open(struct session *s, const char *ini, const struct variant *f, int batch);
void session_close(struct session *s);
/* Data of an input or output, which must be fp32:nchw of `count` elements: to be written
 * before a run, or as the last run left it. The session's. */
float *session_data(struct session *s, const char *name, size_t count);
void session_run(struct session *s);
/* After a run: the engine saved and loaded gives the same outputs, bit for bit. */
void session_check_file(struct session *s);

#endif /* TESTS_ENGINE_SESSION_H */
