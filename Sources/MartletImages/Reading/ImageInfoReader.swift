/// Reads the head of an image as its bytes come: format, size, orientation, frames.
///
/// ```swift
/// var reader = ImageInfoReader()
/// for try await piece in body {
///     try reader.feed(piece)
///     if let info = reader.info { print(info.size); break }
/// }
/// ```
///
/// The size is mostly known with the first thirty bytes; of a JPEG behind its metadata. It keeps no more than 64 KiB and
/// what it was fed last. What comes of a file does not depend on the pieces it comes in.
public struct ImageInfoReader: Sendable {
    private var bytes = ImageBytes()
    private var facts = ImageFacts()
    private var file: (any ImageFileReader)?
    private var failure: ImageError?
    private let limits: ImageLimits

    /// The format; nil until the first bytes have told it.
    public private(set) var format: ImageFormat?
    /// Whether the file is at its end, or nothing that follows would be looked at.
    public private(set) var isComplete = false

    /// A reader at the beginning of a file.
    public init(limits: ImageLimits = .default) { self.limits = limits }

    /// What is known, once the size is; it may gain by what follows, until ``isComplete``.
    public var info: ImageInfo? {
        guard let format, let size = facts.size else { return nil }
        return ImageInfo(
            format: format, size: size, orientation: facts.orientation ?? .up, frameCount: facts.frameCount,
            isAnimated: facts.isAnimated)
    }

    /// Whether all was read that stands before the pixels: size, and mostly the orientation.
    public var hasHead: Bool { facts.size != nil && facts.hasHead || isComplete }

    /// How many bytes of the file were read.
    public var byteOffset: Int { bytes.offset }

    /// Reads more of the file; any number of bytes, none too.
    ///
    /// - Throws: What is wrong, again and again.
    public mutating func feed(_ more: some Collection<UInt8>) throws(ImageError) {
        if let failure { throw failure }
        guard !isComplete else { return }
        do throws(ImageError) {
            bytes.feed(more)
            try run()
        } catch {
            failure = error
            throw error
        }
    }

    /// Takes note that the file ends here.
    ///
    /// - Returns: What is known. A file that ends too early, but behind its size, is none the worse for it.
    /// - Throws: What is wrong: `.truncated` when the size is not known.
    public mutating func finish() throws(ImageError) -> ImageInfo {
        if let failure { throw failure }
        isComplete = true
        if let info { return info }
        let error = ImageError(
            .truncated, format: format, at: bytes.offset + bytes.count,
            "the file ends before its size is known")
        failure = error
        throw error
    }

    private mutating func run() throws(ImageError) {
        while !bytes.isSkipping {
            try checkHead()
            guard var file else {
                guard let found = try ImageSignature.format(of: bytes) else { return }
                format = found
                self.file = ImageSignature.reader(of: found)
                continue
            }
            let hadSize = facts.size != nil
            let place = bytes.offset
            // The copy is the only one: the reader changes in place.
            self.file = nil
            let goesOn: Bool
            do throws(ImageError) {
                goesOn = try file.step(&bytes, &facts)
            } catch {
                throw ImageError(error.code, format: format, at: error.byteOffset, error.message)
            }
            self.file = file
            if !hadSize, let size = facts.size { try check(size, at: place) }
            if file.isDone {
                isComplete = true
                return
            }
            if !goesOn {
                // As it would be with the next byte, if this were not the last piece.
                return try checkHead()
            }
        }
    }

    /// Checks that the size is known, or may still be found. The place is the same whatever the pieces.
    private func checkHead() throws(ImageError) {
        guard facts.size == nil, bytes.offset > limits.headByteCount else { return }
        throw ImageError(
            .limitExceeded, format: format, at: limits.headByteCount,
            "the size is not within the first \(limits.headByteCount) bytes")
    }

    private func check(_ size: ImageSize, at place: Int) throws(ImageError) {
        guard size.width > 0, size.height > 0 else {
            throw ImageError(.malformed, format: format, at: place, "an image of \(size) pixels")
        }
        guard max(size.width, size.height) <= limits.side, size.pixelCount <= limits.pixelCount else {
            throw ImageError(
                .limitExceeded, format: format, at: place,
                "an image of \(size) pixels; \(limits.pixelCount) are allowed, \(limits.side) in a row")
        }
    }
}

extension ImageInfo {
    /// What a file, or the beginning of one, says about its image.
    ///
    /// - Throws: An ``ImageError`` with the place of what is wrong.
    public init(_ bytes: some Collection<UInt8>, limits: ImageLimits = .default) throws(ImageError) {
        var reader = ImageInfoReader(limits: limits)
        try reader.feed(bytes)
        self = try reader.finish()
    }
}

/// What is known so far of a file.
struct ImageFacts: Sendable {
    /// The size; nil until it was read.
    var size: ImageSize?
    /// The orientation; nil until Exif data said it.
    var orientation: ImageOrientation?
    /// The number of frames, once it is known.
    var frameCount: Int?
    /// Whether it is animated, once it is known.
    var isAnimated: Bool?
    /// Whether the pixels begin here, so that nothing more of the head follows.
    var hasHead = false
}

/// The reader of one format, behind its signature.
protocol ImageFileReader: Sendable {
    /// Takes what it can of the bytes.
    ///
    /// - Returns: Whether to go on at once: false when more bytes are needed.
    mutating func step(_ bytes: inout ImageBytes, _ facts: inout ImageFacts) throws(ImageError) -> Bool

    /// Whether nothing that follows would be looked at.
    var isDone: Bool { get }
}

extension ImageFileReader {
    /// The maximum length of a chunk that is read whole.
    static var chunkByteLimit: Int { 64 * 1024 }
}

/// How files of each format begin.
enum ImageSignature {
    private static let all: [(ImageFormat, [UInt8?])] = [
        (.png, [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]), (.jpeg, [0xFF, 0xD8, 0xFF]),
        (.gif, [0x47, 0x49, 0x46, 0x38, 0x37, 0x61]), (.gif, [0x47, 0x49, 0x46, 0x38, 0x39, 0x61]),
        (.webp, Array("RIFF".utf8) + [nil, nil, nil, nil] + Array("WEBP".utf8)),
    ]

    /// The format of a file; nil as long as there may be several.
    static func format(of bytes: ImageBytes) throws(ImageError) -> ImageFormat? {
        var isPossible = false
        for (format, signature) in all {
            let count = min(signature.count, bytes.count)
            let matches = (0..<count).allSatisfy { signature[$0] == nil || signature[$0] == bytes.byte($0) }
            guard matches else { continue }
            if count == signature.count { return format }
            isPossible = true
        }
        guard isPossible else {
            throw ImageError(.unknownFormat, at: 0, "the first bytes are those of no format that is known")
        }
        return nil
    }

    /// A reader at the beginning of a file of a format.
    static func reader(of format: ImageFormat) -> any ImageFileReader {
        switch format {
        case .png: PNGReader()
        case .jpeg: JPEGReader()
        case .gif: GIFReader()
        case .webp: WebPReader()
        }
    }
}
