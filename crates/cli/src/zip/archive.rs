//! A zip whose files are stored as they are: APPNOTE.TXT 6.3.

/// What a version 2.0 of the format can read, as made on Unix.
const VERSION: u16 = 20;
const MADE_ON_UNIX: u16 = (3 << 8) | VERSION;

/// 1980-01-01, the first day of the format: the same files make the same zip.
const DATE: u16 = (1 << 5) | 1;

/// Returns a zip of files: their names, bytes and permissions. `None` if it would be too large.
pub(super) fn zip(files: &[(&str, &[u8], u32)]) -> Option<Vec<u8>> {
    let (mut zip, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes, permissions) in files {
        let place = u32::try_from(zip.len()).ok()?;
        let size = u32::try_from(bytes.len()).ok()?;
        let mut about = Vec::new();
        // No flags, no compression, midnight.
        for number in [VERSION, 0, 0, 0, DATE] {
            about.extend(number.to_le_bytes());
        }
        for number in [crc32fast::hash(bytes), size, size] {
            about.extend(number.to_le_bytes());
        }
        about.extend(u16::try_from(name.len()).ok()?.to_le_bytes());
        // No extra field.
        about.extend([0; 2]);
        zip.extend(b"PK\x03\x04");
        zip.extend(&about);
        zip.extend(name.as_bytes());
        zip.extend(*bytes);
        directory.extend(b"PK\x01\x02");
        directory.extend(MADE_ON_UNIX.to_le_bytes());
        directory.extend(&about);
        // No comment, the first disk, bytes.
        directory.extend([0; 6]);
        // A regular file.
        directory.extend(((0o100_000 | permissions) << 16).to_le_bytes());
        directory.extend(place.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let place = u32::try_from(zip.len()).ok()?;
    let count = u16::try_from(files.len()).ok()?;
    let size = u32::try_from(directory.len()).ok()?;
    zip.extend(directory);
    zip.extend(b"PK\x05\x06");
    zip.extend([0; 4]);
    zip.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    zip.extend([size.to_le_bytes(), place.to_le_bytes()].concat());
    zip.extend([0; 2]);
    Some(zip)
}
