//! gzip (RFC 1952), the content coding of large lists.
//!
//! The compression is a crate's. The container around it is written here: a crate for it would add
//! more to the size of a function than the compression itself.

use miniz_oxide::{deflate::compress_to_vec, inflate::decompress_to_vec};

/// RFC 1952, section 2.3: deflate, no optional fields, no time, an unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// The lengths of the checksum and of the size after the data.
const TRAILER: usize = 8;

/// Higher levels save little of a list, in which most texts occur often.
const LEVEL: u8 = 3;

/// The data as a gzip file.
pub(crate) fn compressed(data: &[u8]) -> Vec<u8> {
    let mut file = HEADER.to_vec();
    file.extend(compress_to_vec(data, LEVEL));
    file.extend(crc32(data).to_le_bytes());
    // Modulo 2^32.
    #[expect(clippy::cast_possible_truncation, reason = "the format truncates it")]
    let size = data.len() as u32;
    file.extend(size.to_le_bytes());
    file
}

/// The data in a gzip file with the header above; `None` for any other.
pub(crate) fn decompressed(file: &[u8]) -> Option<Vec<u8>> {
    let rest = file.strip_prefix(&HEADER)?;
    let (deflated, trailer) = rest.split_at_checked(rest.len().checked_sub(TRAILER)?)?;
    let data = decompress_to_vec(deflated).ok()?;
    trailer
        .starts_with(&crc32(&data).to_le_bytes())
        .then_some(data)
}

/// RFC 1952, section 8.
fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(!0, |crc: u32, byte| {
        let [low, ..] = crc.to_le_bytes();
        CRCS[usize::from(low ^ byte)] ^ (crc >> 8)
    })
}

/// The checksum of each byte.
static CRCS: [u32; 256] = {
    let mut crcs = [0; 256];
    let mut byte = 0;
    while byte < crcs.len() {
        #[expect(clippy::cast_possible_truncation, reason = "it is less than 256")]
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                0xedb8_8320 ^ (crc >> 1)
            } else {
                crc >> 1
            };
            bit += 1;
        }
        crcs[byte] = crc;
        byte += 1;
    }
    crcs
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_survives_compression() {
        for data in ["A tool. ".repeat(10_000), "abc".to_owned(), String::new()] {
            let file = compressed(data.as_bytes());
            assert_eq!(decompressed(&file).unwrap(), data.as_bytes());
            let mut damaged = file.clone();
            let checksum = file.len() - TRAILER;
            damaged[checksum] ^= 1;
            assert_eq!(decompressed(&damaged), None);
            assert_eq!(decompressed(&file[..12]), None);
        }
    }

    #[test]
    fn the_checksum_is_that_of_the_format() {
        // The check value of the algorithm in the catalogue of parametrised CRC algorithms.
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
