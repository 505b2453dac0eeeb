package import MartletStorage

/// Why the bytes of an entry's file are no entry. Each means that the response is not there.
package enum EntryFault: Error, Hashable, Sendable, CustomStringConvertible {
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

    /// What is wrong with the file.
    package var description: String {
        switch self {
        case .foreign: "is not an entry"
        case .version(let number): "was written by another version (\(number))"
        case .length: "is cut short, too long, or without its body"
        case .checksum: "a checksum does not match"
        case .record(let fault): "the field “\(fault.field)” at byte \(fault.offset) cannot be read"
        case .unreadable(let error): "could not be read: \(error)"
        }
    }
}
