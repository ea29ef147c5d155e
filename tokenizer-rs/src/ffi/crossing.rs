// SPDX-License-Identifier: Apache-2.0
//! How anything crosses the C boundary: pointers become slices and places, failures statuses and messages.

use crate::family::Family;
use crate::model::LoadError;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// `pbt_status`, but for `PBT_OK`.
#[derive(Clone, Copy)]
#[repr(i32)]
pub(super) enum Failure {
    Argument = 1,
    Format = 3,
    Unsupported = 4,
    Utf8 = 5,
    Capacity = 6,
    Id = 7,
    Internal = 8,
    Memory = 9,
}

pub(super) type Outcome = Result<(), Failure>;

pub(super) fn family_of(name: &[u8]) -> Result<Family, LoadError> {
    let family = std::str::from_utf8(name).ok().and_then(Family::of_name);
    family.ok_or_else(|| {
        let names = "only gpt2, llama3, cl100k and o200k are supported";
        LoadError::Unsupported(format!("splitting rule {:?}; {names}", String::from_utf8_lossy(name)))
    })
}

/// Cuts the texts of special tokens apart.
///
/// # Safety
/// There are `count` ends, and as many bytes of text as the last of them says.
pub(super) unsafe fn special_texts<'call>(
    text: *const u8,
    ends: *const u64,
    count: usize,
) -> Result<Vec<&'call str>, Failure> {
    // SAFETY: by the contract of this function.
    let ends = unsafe { input(ends, count)? };
    let text_bytes = usize::try_from(ends.last().copied().unwrap_or(0)).map_err(|_| Failure::Argument)?;
    // SAFETY: as above.
    let text = unsafe { input(text, text_bytes)? };
    let mut start = 0;
    let cut = |&end: &u64| {
        let end = usize::try_from(end).ok();
        let one = end.and_then(|end| text.get(std::mem::replace(&mut start, end)..end));
        one.and_then(|one| std::str::from_utf8(one).ok())
            .ok_or(Failure::Argument)
    };
    ends.iter().map(cut).collect()
}

/// What there is, or the reason why not as a message.
pub(super) fn explained<T>(
    result: Result<T, LoadError>,
    message: &mut [MaybeUninit<u8>],
    message_bytes: &mut MaybeUninit<usize>,
) -> Result<T, Failure> {
    message_bytes.write(0);
    let (failure, text) = match result {
        Ok(value) => return Ok(value),
        Err(LoadError::Format(text)) => (Failure::Format, text),
        Err(LoadError::Unsupported(text)) => (Failure::Unsupported, text),
    };
    message_bytes.write(write_message(message, &text));
    Err(failure)
}

/// Runs the body of a boundary function; a panic becomes a status.
pub(super) fn status_of(body: impl FnOnce() -> Outcome) -> i32 {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => failure as i32,
        Err(_) => Failure::Internal as i32,
    }
}

/// Copies as much of the message as fits, without NUL and without half a character; returns its length.
fn write_message(place: &mut [MaybeUninit<u8>], text: &str) -> usize {
    let mut end = text.len().min(place.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    for (byte_place, byte) in place.iter_mut().zip(text[..end].bytes()) {
        byte_place.write(if byte == 0 { b'?' } else { byte });
    }
    end
}

/// # Safety
/// `pointer` is null or points to a live handle.
pub(super) unsafe fn shared<'call, T>(pointer: *const T) -> Result<&'call T, Failure> {
    // SAFETY: by the contract of this function.
    unsafe { pointer.as_ref() }.ok_or(Failure::Argument)
}

/// # Safety
/// `pointer` is null, or points to room for one `T` that nothing else uses during the call.
pub(super) unsafe fn single<'call, T>(pointer: *mut T) -> Result<&'call mut MaybeUninit<T>, Failure> {
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(Failure::Argument);
    }
    // SAFETY: not null, aligned, and by the contract of this function exclusive; MaybeUninit needs no value there.
    Ok(unsafe { &mut *pointer.cast() })
}

fn is_sound<T>(pointer: *const T, length: usize) -> bool {
    let fits = length
        .checked_mul(size_of::<T>())
        .is_some_and(|bytes| isize::try_from(bytes).is_ok());
    !pointer.is_null() && pointer.is_aligned() && fits
}

/// # Safety
/// `pointer` points to `length` initialized values that nothing writes during the call; it may be null if `length` is 0.
pub(super) unsafe fn input<'call, T>(pointer: *const T, length: usize) -> Result<&'call [T], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    if !is_sound(pointer, length) {
        return Err(Failure::Argument);
    }
    // SAFETY: checked above, and by the contract of this function.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
}

/// # Safety
/// `pointer` points to room for `length` values that nothing else uses during the call; it may be null if `length` is 0.
pub(super) unsafe fn output<'call, T>(pointer: *mut T, length: usize) -> Result<&'call mut [MaybeUninit<T>], Failure> {
    if length == 0 {
        return Ok(&mut []);
    }
    if !is_sound(pointer, length) {
        return Err(Failure::Argument);
    }
    // SAFETY: checked above, and by the contract of this function; MaybeUninit needs no values there.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer.cast(), length) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        assert_eq!(status_of(|| panic!("expected by this test")), Failure::Internal as i32);
        assert_eq!(status_of(|| Ok(())), 0);
    }

    #[test]
    fn a_message_is_cut_between_characters_and_holds_no_nul() {
        let mut place = [MaybeUninit::new(0); 4];
        assert_eq!(write_message(&mut place, "a\0bé"), 3);
        // SAFETY: every place was initialized above.
        assert_eq!(place.map(|byte| unsafe { byte.assume_init() }), *b"a?b\0");
    }
}
