/// Reads the head of an image as its bytes arrive: format, size, orientation, frames.
///
/// ```swift
/// var reader = ImageInfoReader()
/// for try await piece in body {
///     try reader.feed(piece)
///     if let info = reader.info { print(info.size); break }
/// }
/// ```
///
/// The size is usually in the first thirty bytes; in a JPEG it follows the metadata. The reader stores at most 64 KiB
/// and the last piece. The results do not depend on how the file is split.
public struct ImageInfoReader: Sendable {
    private var file = ImageFile()
    private var reader: (any ImageFileReader)?
    private var failure: ImageError?
    private let limits: ImageLimits

    /// Whether the file has ended, or its rest is not needed.
    public private(set) var isComplete = false

    /// Creates a reader at the beginning of a file.
    public init(limits: ImageLimits = .default) { self.limits = limits }

    /// The format; `nil` until the first bytes determine it.
    public var format: ImageFormat? { file.format }

    /// The known information, once the size is known; more may follow until ``isComplete``.
    public var info: ImageInfo? {
        guard let format, let size = file.size else { return nil }
        return ImageInfo(
            format: format, size: size, orientation: file.orientation ?? .up, frameCount: file.frameCount,
            isAnimated: file.isAnimated)
    }

    /// Whether everything before the pixels was read: the size, and usually the orientation.
    public var hasHead: Bool { file.size != nil && file.hasHead || isComplete }

    /// The number of bytes of the file that were read.
    public var byteOffset: Int { file.offset }

    /// Reads the next bytes of the file.
    /// - Throws: The error of the file. Later calls throw it again.
    public mutating func feed(_ more: some Collection<UInt8>) throws(ImageError) {
        if let failure { throw failure }
        guard !isComplete else { return }
        do throws(ImageError) {
            file.feed(more)
            try run()
        } catch {
            failure = error
            throw error
        }
    }

    /// Marks the end of the file.
    /// - Returns: The known information. A truncated file is accepted if its size is known.
    /// - Throws: The error of the file; `.truncated` if the size is not known.
    public mutating func finish() throws(ImageError) -> ImageInfo {
        if let failure { throw failure }
        isComplete = true
        if let info { return info }
        let error = file.error("the file ends before its size is known", .truncated, at: file.offset + file.count)
        failure = error
        throw error
    }

    private mutating func run() throws(ImageError) {
        while !file.isSkipping {
            try checkHead()
            if reader == nil {
                guard let format = try ImageFormat.detected(in: file) else { return }
                let (reader, offset) = format.reader
                file.format = format
                file.skip(offset)
                self.reader = reader
                continue
            }
            let hadSize = file.size != nil
            let place = file.offset
            let step = try reader?.step(&file)
            if !hadSize, let size = file.size { try check(size, at: place) }
            switch step {
            case .next, nil: continue
            case .done: isComplete = true
            // The same check as when more bytes follow.
            case .needsBytes: try checkHead()
            }
            return
        }
    }

    /// Checks that the size is known, or may still be found. The position of the error does not depend on the pieces.
    private func checkHead() throws(ImageError) {
        guard file.size == nil, file.offset > limits.headByteCount else { return }
        throw file.error(
            "the size is not within the first \(limits.headByteCount) bytes", .limitExceeded, at: limits.headByteCount)
    }

    private func check(_ size: ImageSize, at place: Int) throws(ImageError) {
        guard size.width > 0, size.height > 0 else { throw file.error("an image of \(size) pixels", at: place) }
        guard max(size.width, size.height) <= limits.side, size.pixelCount <= limits.pixelCount else {
            throw file.error(
                "an image of \(size) pixels; the limits are \(limits.pixelCount) pixels and \(limits.side) a side",
                .limitExceeded, at: place)
        }
    }
}

extension ImageInfo {
    /// Reads the information of a file, or of the beginning of one.
    /// - Throws: An ``ImageError`` with the position of the error.
    public init(_ bytes: some Collection<UInt8>, limits: ImageLimits = .default) throws(ImageError) {
        var reader = ImageInfoReader(limits: limits)
        try reader.feed(bytes)
        self = try reader.finish()
    }
}
