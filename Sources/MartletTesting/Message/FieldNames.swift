// Martlet's own tests also call header fields by the name that RFC 9110 has for them.

extension OriginRequestHead { package var fields: OriginFields { headers } }

extension OriginResponse {
    package var fields: OriginFields {
        get { headers }
        set { headers = newValue }
    }

    package init(_ status: Int = 200, fields: OriginFields, body: OriginResponseBody = .empty) {
        self.init(status, headers: fields, body: body)
    }
}

extension InterimResponse {
    package init(_ status: Int, fields: OriginFields) { self.init(status, headers: fields) }
}
