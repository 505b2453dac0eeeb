package import MartletStorage

/// What was seen where an entry lies.
package enum EntrySight: Sendable {
    /// An entry whose head is whole, and whose body has the right length.
    case whole(EntryReader)
    /// Something that is no entry.
    case damaged(Damage)
    /// The file system kept it from being read.
    case unreadable(StorageError)

    /// What is wrong with an entry.
    package struct Damage: Sendable {
        /// The file's name in the cache's folder.
        package let file: String
        /// What is wrong with it.
        package let fault: EntryFault
        /// The number of the file that was read.
        let identity: UInt64
    }
}
