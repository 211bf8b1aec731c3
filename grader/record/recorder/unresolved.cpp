// Functions that the host code calls and nobody defines: other libraries', and whatever part of the
// CUDA runtime is not supported here. Each gets a stub, so that a call ends with its name and line
// and code that is never called does no harm.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <array>
#include <utility>

#include "recorder.hpp"

namespace {

constexpr size_t MAX_STUBS = 256;
std::vector<std::string> names;

template <size_t I>
void stub() {
  refuse_call(names[I]);
}

template <size_t... I>
constexpr std::array<void (*)(), sizeof...(I)> make_stubs(std::index_sequence<I...>) {
  return {stub<I>...};
}
constexpr auto stubs = make_stubs(std::make_index_sequence<MAX_STUBS>());

bool concerns_textures(const std::string& name) {
  if (name.find("cuda") == std::string::npos) return false;  // its name may be mangled
  for (const char* word : {"Texture", "Surface", "ChannelDesc", "Array"})
    if (name.find(word) != std::string::npos) return true;
  return false;
}

// A function of the CUDA runtime or driver, whose name is not mangled.
bool is_cudas(const std::string& name) {
  return name.rfind("cuda", 0) == 0 ||
         (name.rfind("cu", 0) == 0 && name.size() > 2 && name[2] >= 'A' && name[2] <= 'Z');
}

bool concerns_graphs(const std::string& name) {
  return name.find("Graph") != std::string::npos || name.find("Capture") != std::string::npos;
}

Refusal why_not(const std::string& function) {
  if (is_cudas(function) && concerns_graphs(function)) return GRAPH;
  if (concerns_textures(function)) return TEXTURE;
  return is_cudas(function) ? OTHER_CUDA_CALL : OTHER_LIBRARY;
}

}  // namespace

void refuse_call(const std::string& function) {
  refuse({why_not(function), {{"function", function}}});
}

size_t sink_register(const void*, const void* within) {
  stub_unresolved(within);
  return 0;
}

// Fills the slots through which the library around this address would call what it lacks. It is
// linked for lazy binding, so the slots are still unresolved, and writable.
void stub_unresolved(const void* within) {
  static bool done = false;
  Dl_info info;
  link_map* map = nullptr;
  if (done || !dladdr1(within, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP)) return;
  done = true;
  void* library = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
  const ElfW(Rela)* slots = nullptr;
  const ElfW(Sym)* symbols = nullptr;
  const char* strings = nullptr;
  size_t bytes = 0;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    const auto address = entry->d_un.d_ptr;
    if (entry->d_tag == DT_JMPREL) slots = reinterpret_cast<const ElfW(Rela)*>(address);
    if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(address);
    if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(address);
    if (entry->d_tag == DT_PLTRELSZ) bytes = entry->d_un.d_val;
  }
  for (size_t i = 0; i < bytes / sizeof *slots; ++i) {
    const auto& symbol = symbols[ELF64_R_SYM(slots[i].r_info)];
    const char* name = strings + symbol.st_name;
    if (symbol.st_shndx != SHN_UNDEF || dlsym(library, name) || dlsym(RTLD_DEFAULT, name)) continue;
    if (names.size() == MAX_STUBS) return;
    names.push_back(name);
    *reinterpret_cast<void (**)()>(map->l_addr + slots[i].r_offset) = stubs[names.size() - 1];
  }
}
