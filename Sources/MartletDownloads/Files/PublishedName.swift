package import MartletStorage

/// The name that a complete file has got.
package struct PublishedName: Sendable {
    /// The name.
    package var path: String
    /// Why it may be gone after a power cut, where the folder could not be synced. Then what the bytes were known by is still
    /// there, for the case that they are found under their old name again.
    package var fault: StorageError?
}
