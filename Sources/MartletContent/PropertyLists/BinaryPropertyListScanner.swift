/// A scanner that checks the references of a binary property list, which can describe any graph of objects.
///
/// The only specification is CFBinaryPList.c: `bplist0`, a digit, objects, a table of their offsets, a 32-byte trailer.
struct BinaryPropertyListScanner {
    /// An array or a dictionary whose references are being followed.
    private struct Frame {
        let object: Int
        /// The range of the references that are not followed yet, in the bytes of the list.
        var position: Int
        let end: Int
    }

    private let bytes: [UInt8]
    private let objectCount: Int
    private let offsetSize: Int
    private let referenceSize: Int
    private let tableOffset: Int
    private let topObject: Int
    private var frames: [Frame] = []
    /// Whether each object is in a frame.
    private var isOpen: [Bool]
    /// The number of bytes of texts and data that a decoder may still copy.
    private var contentBudget: Int

    /// Reads the trailer of the list.
    init(_ bytes: [UInt8]) throws(PropertyListError) {
        let trailer = bytes.count - 32
        guard trailer > 8 else { throw PropertyListError(reason: .malformed) }
        self.bytes = bytes
        offsetSize = Int(bytes[trailer + 6])
        referenceSize = Int(bytes[trailer + 7])
        objectCount = try Self.number(bytes[(trailer + 8)..<(trailer + 16)])
        topObject = try Self.number(bytes[(trailer + 16)..<(trailer + 24)])
        tableOffset = try Self.number(bytes[(trailer + 24)...])
        guard (1...8).contains(offsetSize), (1...8).contains(referenceSize), topObject < objectCount, tableOffset >= 9,
            tableOffset < trailer, objectCount <= (trailer - tableOffset) / offsetSize
        else { throw PropertyListError(reason: .malformed) }
        isOpen = [Bool](repeating: false, count: objectCount)
        // Without shared objects, the texts and data are shorter than the list.
        contentBudget = bytes.count + PropertyListScanner.sharedContentLimit
    }

    /// Follows all references from the top object, as a decoder does, and limits their number: with shared objects, a
    /// short list can cause 2⁶⁴ visits. Also limits the bytes of texts and data, which a decoder copies for each
    /// reference.
    mutating func check() throws(PropertyListError) {
        var visitCount = 1
        try visit(topObject)
        while let last = frames.indices.last {
            guard frames[last].position < frames[last].end else {
                isOpen[frames.removeLast().object] = false
                continue
            }
            visitCount += 1
            guard visitCount <= PropertyListScanner.objectLimit else {
                throw PropertyListError(reason: .tooManyObjects)
            }
            let start = frames[last].position
            frames[last].position += referenceSize
            try visit(try Self.number(bytes[start..<start + referenceSize]))
        }
    }

    /// Checks an object, and adds a frame for its references.
    private mutating func visit(_ object: Int) throws(PropertyListError) {
        guard object < objectCount else { throw PropertyListError(reason: .malformed) }
        guard !isOpen[object] else { throw PropertyListError(reason: .cycle) }
        let entry = tableOffset + object * offsetSize
        let offset = try Self.number(bytes[entry..<entry + offsetSize])
        guard offset < tableOffset else { throw PropertyListError(reason: .malformed) }
        let marker = bytes[offset]
        let (unit, isContainer): (Int, Bool) =
            switch marker & 0xF0 {
            case 0x40, 0x50: (1, false)
            case 0x60: (2, false)
            case 0xA0, 0xC0: (referenceSize, true)
            case 0xD0: (2 * referenceSize, true)
            default: (0, false)
            }
        guard unit > 0 else { return }
        let (start, count) = try counted(marker, at: offset + 1, unit: unit)
        guard isContainer else {
            contentBudget -= count * unit
            guard contentBudget >= 0 else { throw PropertyListError(reason: .tooLarge) }
            return
        }
        guard frames.count < PropertyListScanner.depthLimit else { throw PropertyListError(reason: .tooDeep) }
        isOpen[object] = true
        frames.append(Frame(object: object, position: start, end: start + count * unit))
    }

    /// Returns the position and the number of an object's parts, after checking that all are before the offset table.
    private func counted(_ marker: UInt8, at offset: Int, unit: Int) throws(PropertyListError) -> (
        start: Int, count: Int
    ) {
        var (start, count) = (offset, Int(marker & 0x0F))
        if count == 0x0F {
            guard offset < tableOffset, bytes[offset] & 0xF0 == 0x10, bytes[offset] & 0x0F <= 3 else {
                throw PropertyListError(reason: .malformed)
            }
            start = offset + 1 + 1 << Int(bytes[offset] & 0x0F)
            guard start <= tableOffset else { throw PropertyListError(reason: .malformed) }
            count = try Self.number(bytes[(offset + 1)..<start])
        }
        guard start <= tableOffset, count <= (tableOffset - start) / unit else {
            throw PropertyListError(reason: .malformed)
        }
        return (start, count)
    }

    /// Returns a big-endian number.
    /// - Throws: A ``PropertyListError`` if it does not fit into `Int`.
    private static func number(_ bytes: ArraySlice<UInt8>) throws(PropertyListError) -> Int {
        let number = Int(exactly: bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
        guard let number else { throw PropertyListError(reason: .malformed) }
        return number
    }
}
