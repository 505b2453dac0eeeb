/// A file that is read incrementally: the fed bytes that are not used yet, and the known properties of the image.
struct ImageFile: Sendable {
    /// The maximum length of a chunk that is read as a whole.
    static let chunkByteLimit = 64 * 1024

    /// The format; `nil` until the first bytes determine it.
    var format: ImageFormat?
    /// The size; `nil` until it was read.
    var size: ImageSize?
    /// The orientation; `nil` until Exif data contained it.
    var orientation: ImageOrientation?
    /// The number of frames, once it is known.
    var frameCount: Int?
    /// Whether the image is animated, once it is known.
    var isAnimated: Bool?
    /// Whether the whole head was read, and the pixels begin here.
    var hasHead = false

    private var buffer: [UInt8] = []
    private var index = 0
    /// The number of bytes that are still to be skipped as they arrive.
    private var skipping = 0
    /// The offset of the next byte in the file.
    private(set) var offset = 0

    var count: Int { buffer.count - index }

    /// Adds bytes; skipped ones are not stored.
    mutating func feed(_ bytes: some Collection<UInt8>) {
        let dropped = min(skipping, bytes.count)
        skipping -= dropped
        offset += dropped
        if index > buffer.count / 2 {
            buffer.removeFirst(index)
            index = 0
        }
        buffer.append(contentsOf: bytes.dropFirst(dropped))
    }

    /// The next bytes; `nil` if there are not enough yet.
    func peek(_ wanted: Int) -> ArraySlice<UInt8>? { wanted <= count ? buffer[index..<index + wanted] : nil }

    /// The byte at a distance; `nil` if it has not arrived yet.
    func byte(_ distance: Int = 0) -> UInt8? { distance < count ? buffer[index + distance] : nil }

    /// Skips bytes, including those that have not arrived yet.
    mutating func skip(_ number: Int) {
        let dropped = min(number, count)
        index += dropped
        offset += dropped
        skipping = number - dropped
    }

    /// Whether bytes are being skipped that have not arrived yet.
    var isSkipping: Bool { skipping > 0 }

    /// Skips bytes up to the next `0xFF`; `false` if it has not arrived yet.
    mutating func skipToMarker() -> Bool {
        let reached = buffer[index...].firstIndex(of: 0xFF) ?? buffer.count
        offset += reached - index
        index = reached
        return reached < buffer.count
    }

    func error(_ message: String, _ code: ImageError.Code = .malformed, at place: Int? = nil) -> ImageError {
        ImageError(code, format: format, at: place ?? offset, message)
    }
}

extension ArraySlice<UInt8> {
    /// The big-endian number at an offset. The bytes must exist.
    func big(_ place: Int, _ width: Int) -> Int {
        self[(startIndex + place)..<(startIndex + place + width)].reduce(0) { $0 << 8 | Int($1) }
    }

    /// The little-endian number at an offset. The bytes must exist.
    func little(_ place: Int, _ width: Int) -> Int {
        self[(startIndex + place)..<(startIndex + place + width)].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}

protocol ImageFileReader: Sendable { mutating func step(_ file: inout ImageFile) throws(ImageError) -> ImageStep }

/// The result of reading a part of a file.
enum ImageStep {
    case next
    case needsBytes
    /// The rest of the file is not needed.
    case done
}

extension ImageFormat {
    /// The signatures of the formats. A `nil` matches any byte.
    private static let signatures: [(format: ImageFormat, bytes: [UInt8?])] = [
        (.png, [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]), (.jpeg, [0xFF, 0xD8, 0xFF]),
        (.gif, [0x47, 0x49, 0x46, 0x38, 0x37, 0x61]), (.gif, [0x47, 0x49, 0x46, 0x38, 0x39, 0x61]),
        (.webp, Array("RIFF".utf8) + [nil, nil, nil, nil] + Array("WEBP".utf8)),
    ]

    /// Detects the format by the first bytes; `nil` while several are possible.
    static func detected(in file: ImageFile) throws(ImageError) -> ImageFormat? {
        let possible = signatures.filter { signature in
            zip(signature.bytes, 0..<file.count).allSatisfy { $0 == nil || $0 == file.byte($1) }
        }
        guard !possible.isEmpty else {
            throw file.error("the first bytes match no known format", .unknownFormat, at: 0)
        }
        return possible.first { $0.bytes.count <= file.count }?.format
    }

    /// A reader of the format, and the number of bytes to skip before it starts.
    var reader: (any ImageFileReader, offset: Int) {
        switch self {
        case .png: (PNGReader(), 8)
        case .jpeg: (JPEGReader(), 2)
        case .gif: (GIFReader(), 0)
        case .webp: (WebPReader(), 0)
        }
    }
}
