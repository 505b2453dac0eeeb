/// What the file system says of a file.
package struct FileStatus: Equatable, Sendable {
    /// What kind of thing has the name.
    package enum Kind: Sendable {
        /// A regular file.
        case file
        /// A folder.
        case folder
        /// A symbolic link, pipe, socket or device.
        case other
    }

    /// What it is.
    package var kind: Kind
    /// Its length in bytes.
    package var byteCount: UInt64
    /// The bytes it occupies: its blocks, as `du` counts them.
    package var allocatedByteCount: UInt64
    /// Its number in its file system: another file of the same name has another one.
    package var identity: UInt64
    /// The number of its file system, as long as that is mounted.
    package var device: UInt64
    /// When it was written last, in nanoseconds since 1970.
    package var modificationTime: Int64
    /// Who may do what with it.
    package var access: FileAccess

    /// A status, part by part.
    package init(
        kind: Kind, byteCount: UInt64, allocatedByteCount: UInt64, identity: UInt64, device: UInt64 = 0,
        modificationTime: Int64, access: FileAccess
    ) {
        self.kind = kind
        self.byteCount = byteCount
        self.allocatedByteCount = allocatedByteCount
        self.identity = identity
        self.device = device
        self.modificationTime = modificationTime
        self.access = access
    }
}
