package codecs

// builtinStatuses are those of food and parcel delivery, in rank order.
func builtinStatuses() []StatusInfo {
	live := func(name, ko, en string, aliases ...string) StatusInfo {
		return StatusInfo{Name: name, Aliases: aliases, Labels: map[string]string{"ko": ko, "en": en}}
	}
	terminal := func(name, ko, en string) StatusInfo {
		return StatusInfo{Name: name, Terminal: true, Labels: map[string]string{"ko": ko, "en": en}}
	}
	return []StatusInfo{
		live("CREATED", "접수", "Created"),
		live("ASSIGNED", "배차 완료", "Assigned"),
		live("PICKUP_REQUESTED", "픽업 요청", "Pickup requested"),
		live("PICKED_UP", "픽업 완료", "Picked up"),
		live("DELIVERING", "배달 중", "Delivering", "IN_TRANSIT"),
		live("RETURNING", "반송 중", "Returning"),
		terminal("DELIVERED", "배달 완료", "Delivered"),
		terminal("CANCELLED", "취소", "Cancelled"),
		terminal("RETURNED", "반송 완료", "Returned"),
		terminal("FAILED", "배달 실패", "Failed"),
	}
}
