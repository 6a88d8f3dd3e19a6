/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of include/strata/plugin.h that `strata check` looks for.
 */
#include "check/rules.h"

#include <stddef.h>
#include <string.h>

#include "core/status.h"

static const struct check_rule rules[] = {
    /* any callback */
    {"crash", "every callback returns a status; none ends the process"},
    {"exit", "no code of a module ends the process"},
    {"exception",
     "no C++ exception crosses the ABI; STRATA_GUARD turns one into a status"},
    {"hang", "every callback returns; run computes or enqueues, and never waits"},
    {"prints", "standard output is the application's; a module speaks by host->log"},
    {"locale", "a module leaves the process's locale as it is"},
    {"rounding", "a module leaves the floating-point environment as it is"},
    {"folder", "a module leaves the working folder as it is"},
    {"umask", "a module leaves the file mode mask as it is"},
    {"variables", "a module leaves the environment's variables as they are"},
    {"signals", "a module leaves signal handlers and masks as they are"},
    {"message-missing", "a callback that fails says why, through host->fail"},
    {"status-lost", "a callback that called host->fail returns its code"},
    /* load */
    {"refused", "the file is a plugin that this host can load"},
    {"exports", "a module exports strata_module_v1 and nothing else"},
    {"slow-entry", "the entry returns within 100 ms"},
    {"thread", "loading a module starts no thread"},
    {"descriptor", "loading a module leaves no file open; it closes none but its own"},
    {"opens-device", "loading a module opens no device"},
    {"tables-change", "the entry returns the same tables each time"},
    {"extension-answer", "extension answers the ids it knows, to the letter, and NULL "
                         "for any other"},
    /* attributes, shapes */
    {"attribute-default", "every default is a value that the attribute takes"},
    {"attribute-bounds", "the core refuses what is outside an attribute's bounds"},
    {"round-trip", "attributes written as text read back as the same values"},
    {"shape-invalid", "shape gives a rank from 1 to 8, dims of 0 or more, a known dtype"},
    {"shape-impure", "shape gives the same answer for the same node"},
    {"params-modified", "params and descriptions are read-only for every callback"},
    {"untested", "some shape and some impl must work for anything to be tested"},
    /* values and memory */
    {"value-wrong", "outputs agree with the reference, or among impls without one"},
    {"nan-lost", "where an output follows an input, NaN there is NaN here, unless the "
                 "reference says STRATA_NAN_IGNORED"},
    {"reference-failed", "the reference takes every shape that shape takes"},
    {"reference-bounds", "the reference writes inside its outputs alone"},
    {"run-failed", "run works on every combination that accept took"},
    {"bounds", "a run writes inside its outputs, workspace and ctx alone"},
    {"input-modified", "inputs are read-only"},
    {"weight-modified", "weights are read-only"},
    {"state-modified", "state and packed weights are read-only after setup"},
    {"pad-dirty", "pad lanes of outputs are zero unless the impl says PAD_DIRTY"},
    {"gap-written", "what lies around and between the rows of a pitched output stays as "
                    "it is"},
    {"reads-outside", "a run reads inside its inputs, weights and workspace alone"},
    {"unwritten", "a run writes every element of its outputs"},
    {"stale-read", "outputs and workspace hold anything when run begins"},
    {"workspace-size", "workspace gives a size that can be had"},
    {"workspace-grows", "a smaller batch needs no more workspace than a larger one"},
    /* repetition */
    {"nondeterministic", "equal runs give equal bits unless the impl says "
                         "NONDETERMINISTIC"},
    {"rounds-in",
     "an impl that says ROUNDS_IN gives equal bits for inputs rounded before"},
    {"keeps-pointer", "tensors and workspace may lie elsewhere in a context's next run"},
    {"concurrency", "contexts of one instance run at once and change nothing in others"},
    {"leak", "ctx_close and teardown give back what ctx_open and setup took"},
    {"allocates", "run takes no memory of its own"},
    {"unchecked-memory", "memory that cannot be had is an error with a message"},
    /* streams */
    {"stream-capture", "run does only what a stream can capture, or its impl says "
                       "NO_CAPTURE"},
    {"stream-order", "run puts all work on its own stream"},
    {"stream-blocks", "run returns at once: it waits for nothing"},
    {"device-fault", "run does nothing that makes the device unusable"},
};

const struct check_rule *check_rule(const char *id)
{
    static const struct check_rule unknown = {"unknown", "(this rule has no text)"};
    for (size_t i = 0; i < ARRAY_LENGTH(rules); i++)
        if (strcmp(rules[i].id, id) == 0)
            return &rules[i];
    return &unknown;
}
