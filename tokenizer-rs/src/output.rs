// SPDX-License-Identifier: Apache-2.0
//! The caller's buffer of ids, as it fills.

use crate::cache::Value;
use crate::token_id::TokenId;
use std::mem::MaybeUninit;

/// The output buffer is full.
pub struct Full;

/// A buffer and how many ids it holds.
pub struct Output<'buffer, I> {
    buffer: &'buffer mut [MaybeUninit<I>],
    count: usize,
}

impl<'buffer, I: TokenId> Output<'buffer, I> {
    /// An empty one.
    pub fn new(buffer: &'buffer mut [MaybeUninit<I>]) -> Self {
        Self { buffer, count: 0 }
    }

    /// Ids written.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Adds one id.
    #[inline(always)]
    pub fn push(&mut self, id: I) -> Result<(), Full> {
        self.buffer.get_mut(self.count).ok_or(Full)?.write(id);
        self.count += 1;
        Ok(())
    }

    /// Adds ids.
    pub fn extend(&mut self, ids: &[u32]) -> Result<(), Full> {
        let places = self.buffer.get_mut(self.count..self.count + ids.len()).ok_or(Full)?;
        for (place, &id) in places.iter_mut().zip(ids) {
            place.write(I::narrow(id));
        }
        self.count += ids.len();
        Ok(())
    }

    /// Adds the ids of a cache entry; returns how many they are. As many places are written as the largest entry fills:
    /// a copy of fixed size.
    #[inline(always)]
    pub fn push_value(&mut self, value: Value) -> Result<usize, Full> {
        let count = I::count(value);
        let places = self.buffer.get_mut(self.count..self.count + 8);
        if let Some(places) = places.and_then(|places| places.try_into().ok()) {
            I::unpack(value, places);
            self.count += count;
            return Ok(count);
        }
        let mut places = [MaybeUninit::new(I::default()); 8];
        I::unpack(value, &mut places);
        self.push_places(&places[..count])?;
        Ok(count)
    }

    /// Whether that many ids and the places behind them that [`Room::push_value`] fills have room.
    #[inline(always)]
    pub fn has_room(&self, ids: usize) -> bool {
        self.buffer.len() - self.count >= ids + 8
    }

    /// The room that is left, for ids that are known to fit.
    #[inline(always)]
    pub fn room(&mut self) -> Room<'_, I> {
        Room {
            places: self.buffer.as_mut_ptr(),
            next: self.count,
            count: &mut self.count,
        }
    }

    /// Adds the ids of a long entry, the last of which is their count.
    #[inline(always)]
    pub fn push_block(&mut self, block: &I::Block) -> Result<(), Full> {
        let ids = block.as_ref();
        let count = ids[ids.len() - 1].index();
        let Some(places) = self.buffer.get_mut(self.count..self.count + ids.len()) else {
            for &id in &ids[..count] {
                self.push(id)?;
            }
            return Ok(());
        };
        for (place, &id) in places.iter_mut().zip(ids) {
            place.write(id);
        }
        self.count += count;
        Ok(())
    }

    #[cold]
    fn push_places(&mut self, places: &[MaybeUninit<I>]) -> Result<(), Full> {
        let end = self.count + places.len();
        self.buffer
            .get_mut(self.count..end)
            .ok_or(Full)?
            .copy_from_slice(places);
        self.count = end;
        Ok(())
    }
}

/// What is left of a buffer while ids are written without a look at its end. How many they are is counted in a
/// register, and stored when it is closed.
pub struct Room<'output, I> {
    places: *mut MaybeUninit<I>,
    next: usize,
    count: &'output mut usize,
}

impl<I: TokenId> Room<'_, I> {
    /// As [`Output::push_value`].
    ///
    /// # Safety
    /// The buffer has room for 8 more ids.
    #[inline(always)]
    pub unsafe fn push_value(&mut self, value: Value) -> usize {
        // SAFETY: by the contract of this function these are places of the buffer, which is borrowed exclusively.
        let places = unsafe { &mut *self.places.add(self.next).cast() };
        I::unpack(value, places);
        let count = I::count(value);
        self.next += count;
        count
    }

    /// Counts the ids that were written.
    #[inline(always)]
    pub fn close(self) {
        *self.count = self.next;
    }
}
