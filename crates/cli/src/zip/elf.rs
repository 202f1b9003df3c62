//! The processor and the version of GLIBC that an executable requires, read from its ELF headers.

use object::{
    Endianness,
    elf::{self, FileHeader64},
    read::elf::FileHeader,
};

/// The needs of an executable.
pub(super) struct Needs {
    /// The processor, as Lambda names it.
    pub(super) architecture: &'static str,
    /// The version of GLIBC; 0.0 without it.
    pub(super) glibc: (u32, u32),
}

/// Returns the needs of an executable; `None` if it is none for Linux on Lambda's processors.
pub(super) fn needs(program: &[u8]) -> Option<Needs> {
    let header = FileHeader64::<Endianness>::parse(program).ok()?;
    let endian = header.endian().ok()?;
    let architecture = match header.e_machine(endian) {
        elf::EM_X86_64 => "x86_64",
        elf::EM_AARCH64 => "arm64",
        _ => return None,
    };
    let sections = header.sections(endian, program).ok()?;
    let mut glibc = (0, 0);
    if let Some((mut libraries, strings)) = sections.gnu_verneed(endian, program).ok()? {
        let strings = sections.strings(endian, program, strings).ok()?;
        while let Some((_, mut versions)) = libraries.next().ok()? {
            while let Some(needed) = versions.next().ok()? {
                let name = str::from_utf8(needed.name(endian, strings).ok()?).ok()?;
                // A weak version is used if it is there.
                let is_weak = needed.vna_flags.get(endian).contains(elf::VER_FLG_WEAK);
                let version = name.strip_prefix("GLIBC_").filter(|_| !is_weak);
                glibc = glibc.max(version.and_then(numbers).unwrap_or_default());
            }
        }
    }
    Some(Needs {
        architecture,
        glibc,
    })
}

/// Returns the numbers of a version, which may have a third one.
fn numbers(version: &str) -> Option<(u32, u32)> {
    // Relative relocations in a short form, which 2.36 was the first to read.
    if version == "ABI_DT_RELR" {
        return Some((2, 36));
    }
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}
