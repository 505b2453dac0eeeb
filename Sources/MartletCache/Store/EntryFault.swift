package import MartletStorage

/// Why the bytes of an entry's file are no entry. Each means that the response is not there.
package enum EntryFault: Error, Hashable, Sendable {
    /// It does not begin as entries do.
    case foreign
    /// It was written by another version of Martlet.
    case version(UInt16)
    /// It is shorter or longer than it says.
    case length
    /// A checksum does not match.
    case checksum
    /// A field of the record is not what it must be.
    case record(RecordReader.Fault)
    /// The file could not be read.
    case unreadable(StorageError)
}
