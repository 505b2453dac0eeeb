/// Reads the blocks of a GIF (GIF89a specification §17–§27).
struct GIFReader: ImageFileReader {
    private enum Part {
        case screen
        case block
        /// The size of a frame's first code, after the table of its colors.
        case codeSize
        case subBlock
    }

    private var part = Part.screen
    private var frameCount = 0

    mutating func step(_ file: inout ImageFile) throws(ImageError) -> ImageStep {
        switch part {
        case .screen:
            guard let screen = file.peek(13) else { return .needsBytes }
            let size = ImageSize(width: screen.little(6, 2), height: screen.little(8, 2))
            guard size.width > 0, size.height > 0 else {
                throw file.error("a screen of \(size) pixels", at: file.offset + 6)
            }
            file.size = size
            file.skip(13 + GIFReader.tableByteCount(screen.big(10, 1)))
            part = .block
        case .block: return try readBlock(&file)
        case .codeSize:
            guard let size = file.byte() else { return .needsBytes }
            guard (1...11).contains(size) else { throw file.error("codes of \(size) bits") }
            file.skip(1)
            part = .subBlock
        case .subBlock:
            guard let size = file.byte() else { return .needsBytes }
            if size == 0 { part = .block }
            file.skip(1 + Int(size))
        }
        return .next
    }

    private mutating func readBlock(_ file: inout ImageFile) throws(ImageError) -> ImageStep {
        guard let kind = file.byte() else { return .needsBytes }
        switch kind {
        case 0x21:
            guard file.byte(1) != nil else { return .needsBytes }
            file.skip(2)
            part = .subBlock
        case 0x2C:
            guard let frame = file.peek(10) else { return .needsBytes }
            frameCount += 1
            file.hasHead = true
            if frameCount > 1 { file.isAnimated = true }
            file.skip(10 + GIFReader.tableByteCount(frame.big(9, 1)))
            part = .codeSize
        case 0x3B:
            guard frameCount > 0 else { throw file.error("the end of the file before a frame") }
            (file.isAnimated, file.frameCount) = (frameCount > 1, frameCount)
            return .done
        default: throw file.error("a block of the unknown type \(kind)")
        }
        return .next
    }

    /// The size of the color table that a packed field declares, in bytes.
    private static func tableByteCount(_ packed: Int) -> Int { packed & 0x80 == 0 ? 0 : 3 << ((packed & 7) + 1) }
}

extension ImageOrientation {
    /// Finds the orientation in Exif data: the tag 0x0112 in the first directory of a TIFF file (Exif 3.0 §4.6), with
    /// or without `Exif` before it. `nil` if it is absent or the data is malformed, since the picture is still usable.
    init?(exif bytes: ArraySlice<UInt8>) {
        let file = bytes.starts(with: "Exif\0\0".utf8) ? bytes.dropFirst(6) : bytes
        let isBig = file.starts(with: [0x4D, 0x4D, 0, 0x2A])
        guard file.count >= 8, isBig || file.starts(with: [0x49, 0x49, 0x2A, 0]) else { return nil }
        func number(_ place: Int, _ width: Int) -> Int? {
            guard place >= 0, place <= file.count - width else { return nil }
            return isBig ? file.big(place, width) : file.little(place, width)
        }
        guard let directory = number(4, 4), directory >= 8, let count = number(directory, 2) else { return nil }
        for entry in 0..<count {
            let place = directory + 2 + entry * 12
            guard let tag = number(place, 2), let type = number(place + 2, 2), let amount = number(place + 4, 4) else {
                return nil
            }
            guard tag == 0x0112 else { continue }
            // A SHORT, as required, or a LONG, as in some files.
            guard amount == 1, type == 3 || type == 4, let value = number(place + 8, type == 3 ? 2 : 4),
                let rawValue = UInt8(exactly: value)
            else { return nil }
            self.init(rawValue: rawValue)
            return
        }
        return nil
    }
}
