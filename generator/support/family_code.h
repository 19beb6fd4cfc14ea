/* Reports which variant was being made when a family's C function calls exit, crashes or is interrupted. */
#ifndef SUPPORT_FAMILY_CODE_H
#define SUPPORT_FAMILY_CODE_H

/* Call them before and after a family's function, in the same thread: family_code_begin("emit", ID, "sm_80"). */
void family_code_begin(const char *function, const char *id, const char *target);
void family_code_end(void);

/* Watches the program from now on. If such a function calls exit, with any status, the program prints a message and exits with
 * status 3. A crash or an interrupt prints a message, and then has its usual effect. */
void family_code_watch(void);

#endif
