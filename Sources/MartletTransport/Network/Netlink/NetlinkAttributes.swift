/// The attributes behind the fixed part of a message: each a length, a type, and so many bytes.
package struct NetlinkAttributes: Sendable {
    /// One of them.
    package struct Attribute: Hashable, Sendable {
        /// Its type, without the two bits that say what its bytes are like.
        package var type: UInt16
        /// Its bytes.
        package var value: ArraySlice<UInt8>

        /// Its bytes as a number.
        func number<Number: FixedWidthInteger & UnsignedInteger>(_ field: String) throws(NetlinkFault)
            -> Number
        {
            try NetlinkNumber.read(from: value, at: 0, field)
        }

        /// Its bytes as text, up to the zero that ends it.
        func text() -> String {
            String(decoding: value.prefix { $0 != 0 }, as: UTF8.self)
        }
    }

    /// All of them, in order.
    package let all: [Attribute]

    /// Reads attributes.
    ///
    /// Fewer than four bytes behind the last one are padding, as the kernel has it.
    /// - Throws: Where a length is less than its own header's, or more than there is.
    package init(_ bytes: ArraySlice<UInt8>) throws(NetlinkFault) {
        var all: [Attribute] = []
        var rest = bytes
        while rest.count >= 4 {
            let length: UInt16 = try NetlinkNumber.read(from: rest, at: 0, "rtattr.length")
            let count = Int(length)
            guard count >= 4, count <= rest.count else {
                throw NetlinkFault("rtattr.length", at: rest.startIndex)
            }
            let type: UInt16 = try NetlinkNumber.read(from: rest, at: 2, "rtattr.type")
            all.append(Attribute(type: type & 0x3FFF, value: rest.prefix(count).dropFirst(4)))
            rest = rest.dropFirst(NetlinkMessage.aligned(count))
        }
        self.all = all
    }
}
