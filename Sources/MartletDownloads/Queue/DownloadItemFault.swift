package import MartletStorage

/// Why the bytes of a file are no download's.
package enum DownloadItemFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// It is shorter or longer than it says, or than such files can be.
    case length
    /// It does not begin as such files do.
    case foreign
    /// A later version of the form wrote it, and it is whole.
    case version(UInt16)
    /// The checksum is another.
    case checksum
    /// A field is not what it can be.
    case record(RecordReader.Fault)
    /// It is that of another download than its name says.
    case name

    /// What is wrong, in words.
    package var description: String {
        switch self {
        case .length: "it is cut short, or has bytes behind its end"
        case .foreign: "it is not the file of a download"
        case .version(let version): "it has version \(version) of the form, which this version cannot read"
        case .checksum: "its checksum does not match"
        case .record(let fault): "its field \(fault.field) is wrong (byte \(fault.offset))"
        case .name: "it is that of another download than its name says"
        }
    }
}
