// SPDX-License-Identifier: Apache-2.0
/* Calls the first function of a driver's library, and says what it answers. usage: calls_driver LIBRARY FUNCTION */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **words)
{
	void *library = count == 3 ? dlopen(words[1], RTLD_NOW) : NULL;
	int (*call)(unsigned int) = library ? (int (*)(unsigned int))dlsym(library, words[2]) : NULL;

	if (!call) {
		printf("no such call: %s\n", count == 3 ? dlerror() : "usage: calls_driver LIBRARY FUNCTION");
		return 1;
	}
	printf("%s: %d\n", words[2], call(0));
	return 0;
}
