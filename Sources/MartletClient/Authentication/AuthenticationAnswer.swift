package import MartletWire

/// What a response says about authentication.
package struct AuthenticationAnswer: Sendable {
    /// The status.
    package var status: Int
    /// The values of `WWW-Authenticate`, or of the proxy's field.
    package var challenges: [ArraySlice<UInt8>]
    /// The values of `Authentication-Info`, or of the proxy's field.
    package var information: [ArraySlice<UInt8>]

    /// What a response says.
    package init(status: Int, challenges: [ArraySlice<UInt8>] = [], information: [ArraySlice<UInt8>] = []) {
        self.status = status
        self.challenges = challenges
        self.information = information
    }

    /// What a head says to one who asks on a party's behalf.
    package init(status: Int, fields: FieldBlock, party: AuthenticationParty) {
        self.init(
            status: status,
            challenges: status == party.status
                ? fields.rawValues(of: party.challengeField) : [],
            information: fields.rawValues(of: party.informationField))
    }
}
