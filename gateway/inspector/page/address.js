/** The part of the page's address behind `#`, which names what is opened. */

// The page writes its address, of which the browser then tells it nothing; it does of one that somebody else writes.

/** Returns it for these fields: `request`, and `against`, the one that it is compared with. */
export function addressOf(fields) {
  return `#${new URLSearchParams(fields)}`;
}

/** Returns a field of it, or null. */
export function ofAddress(name) {
  return new URLSearchParams(location.hash.slice(1)).get(name);
}
