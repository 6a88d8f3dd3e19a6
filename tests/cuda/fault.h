/* SPDX-License-Identifier: Apache-2.0
 *
 * The k-th call of CUDA's runtime fails. The program that links this exports the calls,
 * so modules that it opens bind to them; what CUDA's libraries call among themselves
 * goes through. Calls that only give back go through too.
 */
#ifndef TESTS_CUDA_FAULT_H
#define TESTS_CUDA_FAULT_H

/* From now on calls are counted, and the at-th fails; 0: none does. */
void cuda_fault_arm(long at);
/* No more; how many calls were counted. */
long cuda_fault_disarm(void);
/* The call that failed last, for messages. */
const char *cuda_fault_name(void);

#endif /* TESTS_CUDA_FAULT_H */
