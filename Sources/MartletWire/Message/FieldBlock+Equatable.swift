extension FieldBlock: Equatable {
    /// Whether both have the same names and values, byte for byte and in the same order.
    package static func == (left: FieldBlock, right: FieldBlock) -> Bool {
        guard left.count == right.count else { return false }
        return left.indices.allSatisfy { index in
            left.name(at: index) == right.name(at: index) && left.value(at: index) == right.value(at: index)
        }
    }
}
