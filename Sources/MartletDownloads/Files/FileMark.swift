package import MartletStorage

/// By what a file is known again that has got another name meanwhile.
package struct FileMark: Hashable, Sendable {
    /// Its number in its file system.
    package var number: UInt64
    /// The number of its file system, which a restart of the machine may change.
    package var device: UInt64
    /// When it was written last, in nanoseconds since 1970; a power cut may take it back.
    package var modificationTime: Int64

    /// A mark, part by part.
    package init(number: UInt64, device: UInt64, modificationTime: Int64) {
        self.number = number
        self.device = device
        self.modificationTime = modificationTime
    }

    /// The mark of a file.
    package init(_ status: FileStatus) {
        self.init(
            number: status.identity, device: status.device, modificationTime: status.modificationTime)
    }

    /// Whether a file is this one. Of what may change while nobody looks, one has to be as it was.
    package func isOf(_ status: FileStatus) -> Bool {
        status.kind == .file && status.identity == number
            && (status.device == device || status.modificationTime == modificationTime)
    }
}
