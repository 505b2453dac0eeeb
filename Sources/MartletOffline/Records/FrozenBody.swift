/// The body of a request that is kept.
package enum FrozenBody: Hashable, Sendable {
    /// There is none.
    case none
    /// Its bytes.
    case inline([UInt8])
    /// A file of the queue's own, beside the record.
    case own(FileMark)
    /// A file of the caller's, by its absolute path.
    case file(String, FileMark)

    /// What a file was when the request was submitted.
    package struct FileMark: Hashable, Sendable {
        /// Its length.
        package var byteCount: UInt64
        /// Its SHA-256, 32 bytes.
        package var digest: [UInt8]

        /// What a file was.
        package init(byteCount: UInt64, digest: [UInt8]) {
            self.byteCount = byteCount
            self.digest = digest
        }
    }

    /// How many bytes it has.
    package var byteCount: UInt64 {
        switch self {
        case .none: 0
        case .inline(let bytes): UInt64(bytes.count)
        case .own(let mark), .file(_, let mark): mark.byteCount
        }
    }

    /// How many bytes of it are in the queue's directory, beside the record.
    var storedByteCount: UInt64 {
        if case .own(let mark) = self { mark.byteCount } else { 0 }
    }
}
