/// The blocks of a GIF (GIF89a specification §17–§27).
struct GIFReader: ImageFileReader {
    private enum State: Equatable {
        case screen
        /// A block comes next.
        case block
        /// The table of a frame's colours was passed; the size of its first code comes next.
        case codeSize
        /// The size of a sub-block comes next.
        case subBlock
        case done
    }

    private var state = State.screen
    private var frameCount = 0

    var isDone: Bool { state == .done }

    mutating func step(_ bytes: inout ImageBytes, _ facts: inout ImageFacts) throws(ImageError) -> Bool {
        switch state {
        case .done: return false
        case .screen:
            guard let screen = bytes.peek(13) else { return false }
            let size = ImageSize(width: screen.little(6, 2), height: screen.little(8, 2))
            guard size.width > 0, size.height > 0 else {
                throw ImageError(.malformed, at: bytes.offset + 6, "a screen of \(size) pixels")
            }
            facts.size = size
            bytes.skip(13 + GIFReader.tableByteCount(screen.big(10, 1)))
            state = .block
            return true
        case .block: return try takeBlock(&bytes, &facts)
        case .codeSize:
            guard let size = bytes.byte() else { return false }
            guard (1...11).contains(size) else {
                throw ImageError(.malformed, at: bytes.offset, "codes of \(size) bits")
            }
            bytes.skip(1)
            state = .subBlock
            return true
        case .subBlock:
            guard let size = bytes.byte() else { return false }
            if size == 0 { state = .block }
            bytes.skip(1 + Int(size))
            return true
        }
    }

    private mutating func takeBlock(
        _ bytes: inout ImageBytes, _ facts: inout ImageFacts
    ) throws(ImageError) -> Bool {
        guard let kind = bytes.byte() else { return false }
        switch kind {
        case 0x21:
            guard bytes.byte(1) != nil else { return false }
            bytes.skip(2)
            state = .subBlock
        case 0x2C:
            guard let frame = bytes.peek(10) else { return false }
            frameCount += 1
            facts.hasHead = true
            if frameCount > 1 { facts.isAnimated = true }
            bytes.skip(10 + GIFReader.tableByteCount(frame.big(9, 1)))
            state = .codeSize
        case 0x3B:
            guard frameCount > 0 else {
                throw ImageError(.malformed, at: bytes.offset, "the end of the file before a frame")
            }
            facts.frameCount = frameCount
            facts.isAnimated = frameCount > 1
            state = .done
            return false
        default: throw ImageError(.malformed, at: bytes.offset, "\(kind) begins no block")
        }
        return true
    }

    /// The bytes of the table of colours that a packed field announces.
    private static func tableByteCount(_ packed: Int) -> Int {
        packed & 0x80 == 0 ? 0 : 3 << ((packed & 7) + 1)
    }
}

/// Finds the orientation in Exif data: the tag 0x0112 of the first directory of a TIFF file (Exif 3.0 §4.6).
///
/// Data that makes no sense says nothing: cameras and editors write all sorts, and the picture is none the worse.
enum ExifOrientation {
    private static let prefix = Array("Exif\0\0".utf8)

    /// The orientation in a TIFF file, with or without `Exif` in front; nil when there is none.
    static func orientation(in bytes: ArraySlice<UInt8>) -> ImageOrientation? {
        let file = bytes.starts(with: prefix) ? bytes.dropFirst(6) : bytes
        guard file.count >= 8 else { return nil }
        let isBig: Bool
        switch Array(file.prefix(4)) {
        case [0x4D, 0x4D, 0, 0x2A]: isBig = true
        case [0x49, 0x49, 0x2A, 0]: isBig = false
        default: return nil
        }
        func number(_ place: Int, _ width: Int) -> Int? {
            guard place >= 0, place <= file.count - width else { return nil }
            return isBig ? file.big(place, width) : file.little(place, width)
        }
        guard let directory = number(4, 4), directory >= 8, let count = number(directory, 2) else {
            return nil
        }
        for entry in 0..<count {
            let place = directory + 2 + entry * 12
            guard let tag = number(place, 2), let type = number(place + 2, 2),
                let amount = number(place + 4, 4)
            else { return nil }
            guard tag == 0x0112 else { continue }
            // A SHORT, as it must be, or a LONG, as some have it.
            guard amount == 1, type == 3 || type == 4, let value = number(place + 8, type == 3 ? 2 : 4) else {
                return nil
            }
            return UInt8(exactly: value).flatMap(ImageOrientation.init)
        }
        return nil
    }
}
