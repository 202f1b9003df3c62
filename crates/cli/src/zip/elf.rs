//! What an executable needs, by its own headers: ELF of 64 bits, little-endian.

/// The section that says which versions of shared libraries are needed: `SHT_GNU_verneed`.
const VERSIONS: usize = 0x6fff_fffe;

/// A version that is used if it is there: `VER_FLG_WEAK`.
const WEAK: usize = 2;

/// The needs of an executable.
pub(super) struct Needs {
    /// The processor, as Lambda names it.
    pub(super) architecture: &'static str,
    /// The version of GLIBC; 0.0 without it.
    pub(super) glibc: (u32, u32),
}

/// Returns the needs of an executable; `None` if it is none for Linux on Lambda's processors.
pub(super) fn needs(program: &[u8]) -> Option<Needs> {
    let file = File(program);
    if !program.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let architecture = match file.number(18, 2)? {
        62 => "x86_64",
        183 => "arm64",
        _ => return None,
    };
    let names = file.needed_versions()?;
    let glibc = names.filter_map(|it| version(it.strip_prefix("GLIBC_")?));
    Some(Needs {
        architecture,
        glibc: glibc.max().unwrap_or_default(),
    })
}

/// Returns the numbers of a version, which may have a third one.
fn version(name: &str) -> Option<(u32, u32)> {
    if name == "ABI_DT_RELR" {
        return Some((2, 36));
    }
    let mut numbers = name.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

struct File<'a>(&'a [u8]);

impl<'a> File<'a> {
    fn number(&self, place: usize, size: usize) -> Option<usize> {
        let bytes = self.0.get(place..place.checked_add(size)?)?;
        let add = |sum: usize, byte: &u8| (sum << 8) | usize::from(*byte);
        Some(bytes.iter().rev().fold(0, add))
    }

    /// Returns the text that ends with a zero.
    fn text(&self, place: usize) -> Option<&'a str> {
        let bytes = self.0.get(place..)?.split(|it| *it == 0).next()?;
        str::from_utf8(bytes).ok()
    }

    /// Returns the names of the versions that have to be there, of all shared libraries.
    fn needed_versions(&self) -> Option<impl Iterator<Item = &'a str>> {
        let (table, count) = (self.number(40, 8)?, self.number(60, 2)?);
        let header = |number: usize| table.checked_add(number * 64);
        let mut names = Vec::new();
        for section in (0..count).filter_map(header) {
            if self.number(section + 4, 4)? != VERSIONS {
                continue;
            }
            let texts = self.number(header(self.number(section + 40, 4)?)? + 24, 8)?;
            let mut library = self.number(section + 24, 8)?;
            for _ in 0..self.number(section + 44, 4)? {
                let mut version = library + self.number(library + 8, 4)?;
                for _ in 0..self.number(library + 2, 2)? {
                    if self.number(version + 4, 2)? & WEAK == 0 {
                        names.push(self.text(texts + self.number(version + 8, 4)?)?);
                    }
                    version += self.number(version + 12, 4)?;
                }
                library += self.number(library + 12, 4)?;
            }
        }
        Some(names.into_iter())
    }
}
