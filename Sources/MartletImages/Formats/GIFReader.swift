/// The blocks of a GIF (GIF89a specification §17–§27).
struct GIFReader: ImageFileReader {
    private enum State {
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

    var isDone: Bool {
        if case .done = state { return true }
        return false
    }

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
        default:
            throw ImageError(.malformed, at: bytes.offset, "\(kind) begins no block")
        }
        return true
    }

    /// The bytes of the table of colours that a packed field announces.
    private static func tableByteCount(_ packed: Int) -> Int {
        packed & 0x80 == 0 ? 0 : 3 << ((packed & 7) + 1)
    }
}
