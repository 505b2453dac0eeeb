package import HTTPTypes
package import MartletStorage

extension RecordWriter {
    /// Writes the number of fields, and their names and values. A value has the bytes as on the wire, which may be
    /// invalid UTF-8.
    package mutating func write(_ fields: HTTPFields) {
        write(UInt16(truncatingIfNeeded: fields.count))
        for field in fields {
            write(text: field.name.rawName)
            write(counted: field.valueBytes)
        }
    }
}

extension RecordReader {
    /// Reads at most 10,000 fields, each name and value of at most `limit` bytes.
    package mutating func fields(limit: Int) throws(FieldError) -> HTTPFields {
        HTTPFields(
            try list(of: UInt16.self, limit: 10_000, "fields") { reader throws(FieldError) in
                let name = try reader.fieldName(limit: limit, "field name")
                return HTTPField(name: name, value: try reader.counted(limit: limit, "field value"))
            })
    }

    /// Reads the name of a field.
    package mutating func fieldName(limit: Int, _ field: String) throws(FieldError) -> HTTPField.Name {
        guard let name = HTTPField.Name(try text(limit: limit, field)) else { throw makeError(field) }
        return name
    }
}
