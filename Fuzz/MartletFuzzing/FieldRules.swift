import MartletWire

/// The properties of every block of fields that a parser accepts.
enum FieldRules {
    /// - Throws: The first field that could split a message, or that cannot be found by its name.
    static func check(_ fields: FieldBlock) throws(FuzzFinding) {
        for index in fields.indices {
            let name = fields.name(at: index)
            let value = fields.value(at: index)
            try require(
                !name.isEmpty && name.allSatisfy(ByteClass.isToken), "field name \(Array(name)) is no token")
            try require(
                value.allSatisfy(ByteClass.isFieldValue), "field value \(Array(value)) holds a control byte")
            try require(
                value.elementsEqual(ByteClass.trimmed(value)), "field value \(Array(value)) has blank ends")
            let found = fields.firstIndex(of: fields.nameString(at: index))
            try require(found.map { $0 <= index } == true, "field \(index) is not found by its name")
        }
    }
}
